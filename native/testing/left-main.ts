/** Leaves the process by process.exit while a worker thread is inside the engine. */
import { engineTicks } from '../index.ts';
import { startWorker } from './busy-worker.ts';

const { inside } = startWorker('train', 1);
const before = engineTicks();
const timer = setInterval(() => {
  if (engineTicks() < before + 200 || Atomics.load(inside, 0) === 0) return;
  clearInterval(timer);
  console.log('leaving');
  process.exit(0);
}, 1);
