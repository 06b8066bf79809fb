// graphile-worker, tuned as its page about performance says: a local queue, so that a fetch takes
// many jobs, and completions and failures in batches. A job that is done is deleted; of its
// failures the last message stays.
//
// The delay of a retry is e^attempts seconds and cannot be set. For the storm, a trigger brings it
// forward to now, which costs it one call of a function at each failure.

import { KINDS, FAILURES, execute, load, serve } from "../peer_process.mjs";

const { Logger, run, makeWorkerUtils } = await load("graphile-worker");

const BATCH = 500; // of the local queue
const AT_ONCE = `
  create or replace function graphile_worker.at_once() returns trigger language plpgsql as $$
  begin new.run_at = now(); return new; end $$;
  create or replace trigger at_once before update on graphile_worker._private_jobs
    for each row when (new.run_at > old.run_at)
    execute function graphile_worker.at_once();`;

const spec = { maxAttempts: FAILURES + 1 };

class GraphileWorker {
  async install() {
    const utils = await makeWorkerUtils({ connectionString: "postgres:///" });
    await utils.migrate();
    await utils.release();
  }

  async connect(sessions) {
    this.utils = await makeWorkerUtils({
      connectionString: "postgres:///",
      maxPoolSize: sessions,
    });
  }

  async submit(work, payload) {
    await this.utils.addJob(work, { payload }, spec);
  }

  async submitMany(work, payloads) {
    await this.utils.addJobs(
      payloads.map((payload) => ({ identifier: work, payload: { payload }, ...spec })),
    );
  }

  async run(work, concurrency) {
    const task = (kind) => (payload, helpers) =>
      execute(kind, payload.payload, helpers.job.attempts);
    if (work === "storm-async") await this.utils.withPgClient((client) => client.query(AT_ONCE));
    const idle = work === "stamp"; // batches would only add to the latency
    await run({
      taskList: Object.fromEntries(KINDS.map((kind) => [kind, task(kind)])),
      noHandleSignals: true,
      preset: {
        worker: {
          connectionString: "postgres:///",
          logger: new Logger(() => () => {}),
          concurrentJobs: concurrency,
          maxPoolSize: 10,
          pollInterval: work === "storm-async" ? 20 : 2000,
          localQueue: idle ? undefined : { size: BATCH },
          completeJobBatchDelay: idle ? -1 : 5,
          failJobBatchDelay: idle ? -1 : 5,
        },
      },
    });
  }
}

await serve(new GraphileWorker());
