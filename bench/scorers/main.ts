/**
 * `npm run scorers`: what a scorer adds to an iteration. The same recipe runs with a scorer that takes no time, with
 * one that sleeps 0.8 times as long as the generation takes, and with one that computes. The last line has the figures.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openStack } from '../../api/index.ts';
import { openStore } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { median } from '../clock.ts';
import { iterationTimes } from '../run/iterations.ts';
import type { IterationTimes } from '../run/iterations.ts';
import { privateHome } from '../run/private-home.ts';
import { prompts, samplesPerPrompt, scorerProcesses, writeRecipe } from './recipe.ts';
import type { ScorerWork } from './recipe.ts';

const patienceMs = 10 * 60 * 1000;
/** Iterations at the start of a run that do not count: scorers are started, caches filled. */
const warmUp = 1;
/** Sleep, as a share of the generation's time. */
const sleepShare = 0.8;
const computeShare = 0.4;
const samples = prompts * samplesPerPrompt;

const names = ['none', 'sleeping', 'computing'] as const;
type Name = (typeof names)[number];

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '2' }, iterations: { type: 'string', default: '4' } },
  });
  const [rounds, iterations] = [Number(values.rounds), Number(values.iterations)];
  const { home, remove } = privateHome();
  process.once('SIGINT', () => void remove().finally(() => process.exit(130)));
  const times: Record<Name, IterationTimes[]> = { none: [], sleeping: [], computing: [] };
  try {
    await openStack({ home, env: process.env }).up();
    const recipe = await writeRecipe(join(home, 'scorers'), warmUp + iterations);
    for (let round = 0; round < rounds; round++) {
      for (const name of names) {
        const more = await timesOf(home, recipe, workOf(name, times.none));
        times[name].push(...more);
        console.log(`${name}: iterations of ${more.map(({ wallMs }) => seconds(wallMs)).join(', ')}`);
      }
    }
  } finally {
    await remove();
  }
  console.log(summary(times));
}

/** The scorer's work for one sample, from the iterations without any. */
function workOf(name: Name, before: readonly IterationTimes[]): ScorerWork {
  const perSample = name === 'none' ? 0 : generationMs(before) / samples;
  return {
    sleepMs: name === 'sleeping' ? sleepShare * perSample * scorerProcesses : 0,
    computeMs: name === 'computing' ? computeShare * perSample : 0,
  };
}

async function timesOf(home: string, recipe: string, { sleepMs, computeMs }: ScorerWork): Promise<IterationTimes[]> {
  const overrides = [`reward.reward_kwargs={sleepMs: ${sleepMs}, computeMs: ${computeMs}}`];
  const run = await openStack({ home, env: process.env }).start({ recipe, overrides });
  const state = await run.follow(() => {}, AbortSignal.timeout(patienceMs));
  if (state !== 'completed') throw new Error(`the run is ${state}: ${(await run.outcome()).reason?.message}`);
  return iterationTimes(new RunLog(await openStore(defaultStore(home)), run.id), warmUp);
}

const iterationMs = (times: readonly IterationTimes[]) => median(times.map(({ wallMs }) => wallMs));
const generationMs = (times: readonly IterationTimes[]) => median(times.map(({ stageMs }) => stageMs.rollout));
const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;

/** `own`: the processor time of the computing scorer, shared by the cores. */
function summary(times: Readonly<Record<Name, readonly IterationTimes[]>>): string {
  const [none, sleeping, computing] = names.map((name) => iterationMs(times[name])) as [number, number, number];
  const generation = generationMs(times.none);
  const own = (computeShare * generation) / availableParallelism();
  return [
    `generation ${seconds(generation)}`,
    `iteration without scorer ${seconds(none)}`,
    `with ${seconds(sleepShare * generation)} of sleep ${seconds(sleeping)} = ${(sleeping / none).toFixed(3)} of it`,
    `with ${seconds(own)} of computing on all cores ${seconds(computing)} = ${(computing / (none + own)).toFixed(3)} of both`,
  ].join('; ');
}

await main();
