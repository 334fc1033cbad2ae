/**
 * Preloaded into every process of a measured stack (`node --import`). Records the process's peak memory and the longest
 * turns of its main thread. Turns are measured in processor time, so that other work on the same cores does not count.
 * The turns of the first seconds do not count, because the process loads its modules then.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isMainThread } from 'node:worker_threads';
import { peakResidentBytes } from '../peak-memory.ts';

/** The figures of one process. */
export interface WatchedProcess {
  readonly words: readonly string[];
  readonly peakBytes: number;
  /** Processor time of all its threads. */
  readonly processorSeconds: number;
  /** Longest first: start, in ms since the process began, and duration. */
  readonly turns: readonly { readonly atMs: number; readonly ms: number }[];
}

const everyMs = 5;
const writtenEveryMs = 500;
const keptTurns = 20;
const loadingMs = 3_000;

/** The variable with the folder into which processes write. */
export const watchFolder = 'BENCH_WATCH_FOLDER';

const folder = process.env[watchFolder];
if (isMainThread && folder !== undefined) watch(join(folder, `${process.pid}.json`));

/** Processor time of the main thread, whose id is the id of the process. */
function processorMs(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

function watch(path: string): void {
  let turns: { readonly atMs: number; readonly ms: number }[] = [];
  let [before, written] = [processorMs(), 0];
  const write = () => {
    const { user, system } = process.cpuUsage();
    const found: WatchedProcess = {
      words: process.argv.slice(1),
      peakBytes: peakResidentBytes(),
      processorSeconds: (user + system) / 1e6,
      turns,
    };
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(found));
  };
  const look = () => {
    const now = performance.now();
    const ms = processorMs() - before;
    if (ms > everyMs && now > loadingMs)
      turns = [...turns, { atMs: now, ms }].sort((a, b) => b.ms - a.ms).slice(0, keptTurns);
    if (now - written > writtenEveryMs) {
      written = now;
      write();
    }
    before = processorMs();
  };
  setInterval(look, everyMs).unref();
  process.on('exit', write);
}
