/**
 * Worker threads that are busy in the engine, for programs that end them or run several. Only for processes that were
 * started with strip-types.mjs: its compiler cannot be loaded by a thread after the only thread that had it has ended.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '../package-root.ts';

/** `digests` posts the digests of `randomWork` for a few seeds and ends; the others never return. */
export type Work = 'train' | 'generate' | 'digests';

export interface BusyWorker {
  readonly thread: Worker;
  /** 1 while the thread is inside a call of the engine that computes. */
  readonly inside: Int32Array;
}

/** What busy-main.ts gets. */
export interface WorkerTask {
  readonly work: Work;
  readonly seed: number;
  readonly inside: Int32Array;
}

export function startWorker(work: Work, seed: number): BusyWorker {
  const address = (path: string) => JSON.stringify(pathToFileURL(join(packageRoot(), path)).href);
  const inside = new Int32Array(new SharedArrayBuffer(4));
  const task: WorkerTask = { work, seed, inside };
  const program = `import(${address('rewards/host/strip-types.mjs')}).then(() => import(${address('native/testing/busy-main.ts')}))`;
  return { thread: new Worker(program, { eval: true, workerData: task }), inside };
}
