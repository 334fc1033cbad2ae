/**
 * Starts a run on a private stack and stops after its first rollout: how soon the rollout started, and what the
 * processes needed.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { RunId } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { builtFile, packageRoot } from '../../infra/home.ts';
import { openStore } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { needRecord } from '../../log/objects/records.ts';
import { stopStack } from '../../infra/stack/index.ts';
import { poll } from '../../infra/poll.ts';
import { privateHome } from '../run/private-home.ts';
import { watchFolder } from './watch-process.ts';
import type { WatchedProcess } from './watch-process.ts';

const limitMs = 30 * 60 * 1000;

export interface FirstJob {
  /** Seconds from the command until a worker has the first job. */
  readonly seconds: number;
  /** Figures of the stack's Node processes and of the command. */
  readonly processes: readonly (WatchedProcess & { readonly name: string })[];
}

/** `words`: arguments of `petrel run` after the recipe. */
export async function timeFirstJob(recipe: string, words: readonly string[]): Promise<FirstJob> {
  const { home, remove } = privateHome();
  const watched = join(home, 'watched');
  mkdirSync(watched);
  try {
    const began = Date.now();
    const runId = await startRun(home, watched, recipe, words);
    const seconds = ((await firstRolloutBegan(home, runId)) - began) / 1000;
    await stopStack(home); // each process writes its figures when it exits
    return { seconds, processes: readWatched(watched) };
  } finally {
    await remove();
  }
}

async function startRun(home: string, watched: string, recipe: string, words: readonly string[]): Promise<RunId> {
  const program = join(packageRoot(), 'cli/bin.mjs');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, 'run', recipe, '--detach', '--json', ...words],
    {
      env: {
        ...process.env,
        PETREL_HOME: home,
        NODE_OPTIONS: `--import ${builtFile('bench/dataset/watch-process.js')}`,
        PETREL_PRELOAD: builtFile('bench/dataset/watch-process.js'),
        [watchFolder]: watched,
      },
      timeout: limitMs,
    },
  );
  return (JSON.parse(stdout) as { readonly runId: RunId }).runId;
}

/** A result record is written when its job ends, and contains the job's seconds. */
async function firstRolloutBegan(home: string, runId: RunId): Promise<number> {
  const store = await openStore(defaultStore(home));
  const jobs = async () =>
    (await store.children(keys.result(runId, 'x').replace(/[^/]+$/, ''))).filter((name) => name.startsWith('rollout-'));
  await poll(async () => (await jobs()).length > 0, { everyMs: 200, timeoutMs: limitMs });
  const began = (await jobs()).map(async (name) => {
    const key = keys.result(runId, basename(name, '.json'));
    const { timings, writer } = (await needRecord(store, key, resultRecord)).record;
    return Date.parse(writer.at) - 1000 * Number(timings['timing_s/rollout']);
  });
  return Math.min(...(await Promise.all(began)));
}

function readWatched(folder: string): FirstJob['processes'] {
  return readdirSync(folder).map((file) => {
    const found = JSON.parse(readFileSync(join(folder, file), 'utf8')) as WatchedProcess;
    return { ...found, name: nameOf(found.words) };
  });
}

const programs = [
  ['cli/bin.mjs', 'run'],
  ['programs/control.js', 'control'],
  ['programs/worker.js', 'worker'],
] as const;

function nameOf([program = '']: readonly string[]): string {
  return programs.find(([file]) => program.endsWith(file))?.[1] ?? basename(program);
}
