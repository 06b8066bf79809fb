// The process of a contender that runs on Node: what peer_process.py is for Python. It does what
// lines of JSON on its standard input say, and answers each with one on its standard output.
//
// The contender's packages are in a folder of their own, which the first argument names.

import { openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

export const QUEUE = "bench";
export const KINDS = ["no-op-async", "storm-async", "stamp", "sleep"];
export const FAILURES = 3; // a task of the storm fails so many times, and succeeds then
const FRAMES = 17; // a line each: with the first, the last and the caller's own, a stack of 20
Error.stackTraceLimit = 25; // the default, 10, would store half of it

const now = () => Number(process.hrtime.bigint()); // CLOCK_MONOTONIC, as Python's monotonic_ns
const sleep = (seconds) => new Promise((done) => setTimeout(done, Math.max(0, seconds * 1000)));

/** Import a package of the contender's folder. */
export function load(name) {
  const require = createRequire(pathToFileURL(`${process.argv[2]}/package.json`));
  return import(pathToFileURL(require.resolve(name)));
}

const executions = { count: 0, first: 0 };

/** Do a task; `attempt` is from 1 on. */
export async function execute(work, payload, attempt) {
  if (executions.count++ === 0) executions.first = now();
  if (work === "storm-async" && attempt <= FAILURES) down(FRAMES);
  if (work === "stamp") stamp(payload);
  if (work === "sleep") await sleep(Number(payload.split(" ")[1]));
}

function down(frames) {
  if (frames === 0) throw new Error("the service that this task calls does not answer: 503");
  down(frames - 1);
}

let pipe;
function stamp(payload) {
  const at = now();
  pipe ??= openSync(process.env.RDQ_BENCH_STAMPS, "w");
  writeSync(pipe, `${payload} ${at}\n`);
}

const payloads = (count, size) =>
  Array.from({ length: count }, (_, n) => `${String(n).padStart(12, "0")} `.padEnd(size, "x"));

/** Submit with so many sessions at once. */
async function submit(queue, work, texts, sessions) {
  const session = async (first) => {
    for (let n = first; n < texts.length; n += sessions) await queue.submit(work, texts[n]);
  };
  await Promise.all(Array.from({ length: sessions }, (_, n) => session(n)));
}

/** Submit so many a second, whatever the time that one takes. */
async function pace(queue, work, rate, seconds, sessions) {
  const texts = payloads(Math.floor(rate * seconds), 200);
  const began = now();
  const session = async (first) => {
    for (let n = first; n < texts.length; n += sessions) {
      await sleep(n / rate - (now() - began) / 1e9);
      await queue.submit(work, texts[n]);
    }
  };
  await Promise.all(Array.from({ length: sessions }, (_, n) => session(n)));
}

async function answer(queue, command) {
  const { do: what, work, sessions } = command;
  if (what === "install") await queue.install();
  if (what === "connect") await queue.connect(sessions);
  if (what === "work") await queue.run(work, command.concurrency);
  if (what === "submit") await submit(queue, work, payloads(command.count, 200), sessions);
  if (what === "pace") await pace(queue, work, command.rate, command.seconds, sessions);
  if (what === "executed") return executions;
  if (what === "one") {
    const began = now();
    await queue.submit(work, command.payload);
    return { began };
  }
  if (what === "submit_many") {
    const texts = payloads(command.count, 200);
    for (let n = 0; n < texts.length; n += command.batch)
      await queue.submitMany(work, texts.slice(n, n + command.batch));
  }
  return {};
}

// Standard output is for answers; what a library logs goes where its complaints go.
for (const level of ["debug", "info", "log", "warn"]) console[level] = console.error;

/** Do what each line says until there is no more. */
export async function serve(queue) {
  const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  process.on("SIGTERM", () => process.exit(0));
  say({ ready: true });
  for await (const line of createInterface({ input: process.stdin }))
    say(await answer(queue, JSON.parse(line)));
  process.exit(0);
}
