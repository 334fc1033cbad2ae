/**
 * `threads-main.ts ended <train|generate>`: ends worker threads while they are inside a call of the engine, and prints
 * how many, then the digest of the main thread's own work before and after.
 * `threads-main.ts together`: prints the digests of work on two threads and the main thread, first one after the other,
 * then at once.
 */
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { engineTicks } from '../index.ts';
import { startWorker, type Work } from './busy-worker.ts';
import { randomWork } from './random-work.ts';

const options = { compute: 'fp32', deterministic: true, threads: 2 } as const;

/**
 * Ends a thread that computes: 1 when that was inside a call of the engine, which then never returned to JavaScript.
 */
async function endedInside(work: Work, seed: number): Promise<number> {
  const { thread, inside } = startWorker(work, seed);
  const idle = engineTicks();
  while (engineTicks() < idle + 200 || Atomics.load(inside, 0) === 0) await setTimeout(1);
  await thread.terminate();
  return Atomics.load(inside, 0);
}

async function ended(work: Work): Promise<void> {
  const before = randomWork(5, options);
  let count = 0;
  for (let seed = 1; count < 3 && seed <= 20; seed++) count += await endedInside(work, seed);
  console.log(count);
  console.log(before);
  console.log(randomWork(5, options));
}

async function together(): Promise<void> {
  const alone = [1, 2, 3, 11, 12, 13, 21].map((seed) => randomWork(seed, options));
  const threads = [1, 11].map((seed) => startWorker('digests', seed).thread);
  const posted = Promise.all(threads.map((thread) => once(thread, 'message') as Promise<[string[]]>));
  const mine = randomWork(21, options);
  console.log(JSON.stringify(alone));
  console.log(JSON.stringify([...(await posted).flat(2), mine]));
}

const [what, work] = process.argv.slice(2);
await (what === 'ended' ? ended(work as Work) : together());
