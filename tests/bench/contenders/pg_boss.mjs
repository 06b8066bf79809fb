// pg-boss, with LISTEN and NOTIFY, batches of 500 that go on while they come back full, and per-job
// results, without which one failure fails its batch. Completed jobs stay, as by default; of a
// job's failures the last one stays.

import { QUEUE, KINDS, FAILURES, execute, load, serve } from "../peer_process.mjs";

const { PgBoss } = await load("pg-boss");

const BATCH = 500;

class PgBossJobs {
  async #start(options) {
    const boss = new PgBoss({ schedule: false, useListenNotify: true, ...environment, ...options });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    return boss;
  }

  async install() {
    const boss = await this.#start({});
    await boss.createQueue(QUEUE, { retryLimit: FAILURES, retryDelay: 0, notify: true });
    await boss.stop({ graceful: false });
  }

  async connect(sessions) {
    this.boss = await this.#start({ max: sessions });
  }

  async submit(work, payload) {
    await this.boss.send(QUEUE, { work, payload });
  }

  async submitMany(work, payloads) {
    await this.boss.insert(
      QUEUE,
      payloads.map((payload) => ({ data: { work, payload } })),
    );
  }

  async run(work, concurrency) {
    const boss = await this.#start({ max: 10 });
    const options = {
      batchSize: work === "stamp" || work === "sleep" ? 1 : BATCH,
      // A batch ends with its slowest job: where some are slow, many workers take one job each.
      localConcurrency: work === "sleep" ? concurrency : 1,
      burstWhenBatchFull: true,
      includeMetadata: true,
      perJobResults: true,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
    };
    await boss.work(QUEUE, options, (jobs) => Promise.all(jobs.map(settle)));
  }
}

async function settle(job) {
  try {
    await execute(job.data.work, job.data.payload, job.retryCount + 1);
    return { id: job.id, status: "completed" };
  } catch (error) {
    const output = { message: error.message, stack: error.stack };
    return { id: job.id, status: "failed", output };
  }
}

const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env;
const environment = { host: PGHOST, port: Number(PGPORT), user: PGUSER, database: PGDATABASE };

await serve(new PgBossJobs());
