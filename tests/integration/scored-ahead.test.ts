// @module-tag long
/**
 * Samples are scored when they have ended, and not when their rollout job has. The sampling worker stands still in the
 * middle of the job while the first samples are scored, so no clock decides what the test sees.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { mergeTrees } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { isAlive, signalProcess } from '../../infra/stack/process.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { packageRoot } from '../../infra/home.ts';
import { faultsVariable } from '../../log/faults/index.ts';
import { needRecord } from '../../log/objects/records.ts';
import type { Standing } from '../inject.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { makeUnevenModel, unevenRecipe } from '../uneven-model.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const { loop, injector: inject, faults } = loopWithFaults();
let base: Tree;
let undisturbed: Bits;
/** Makes the ids of faults unique. */
let tries = 0;

interface Bits {
  readonly states: readonly string[];
  readonly scores: readonly string[];
}

beforeAll(async () => {
  await loop.up([
    { name: 'train', count: 1, roles: ['trainer'], threads: 1 },
    { name: 'sample', count: 1, roles: ['rollout'], threads: 1 },
    { name: 'score', count: 1, roles: ['reward'], threads: 1 },
  ]);
  const recipe = unevenRecipe(await makeUnevenModel(loop.home), scorerWithPoint());
  base = mergeTrees(recipe, { trainer: { total_training_steps: 1 } });
  undisturbed = bitsOf(await outcome(await loop.completed(base)));
});

/** Stops at `score.sample`. It scores the length of the response and says for which sample it was called. */
function scorerWithPoint(): string {
  const path = join(loop.home, 'pointed.mjs');
  writeFileSync(
    path,
    [
      `process.env.${faultsVariable} = ${JSON.stringify(faults)};`,
      `const { faultPoint } = await import(${JSON.stringify(join(packageRoot(), 'dist/log/faults/index.js'))});`,
      `export function computeScore({ solutionStr }) {`,
      `  faultPoint('score.sample');`,
      `  console.log('called');`,
      `  return solutionStr.length / 600;`,
      `}`,
    ].join('\n'),
  );
  return path;
}

async function outcome(run: StartedRun) {
  const iterations = await loop.iterations(run);
  const results = await Promise.all(iterations.flatMap(({ batch }) => batch.results).map((id) => result(run, id)));
  const rewards = results.filter(({ stage }) => stage === 'reward');
  return {
    states: iterations.map(({ update }) => update.stateDigest),
    scores: rewards.map(({ output }) => String(output['scores'])),
    ahead: rewards.map(({ timings }) => Number(timings['reward/samples_scored_ahead'])),
    metric: iterations.map(({ batch }) => Number(batch.timings['reward/samples_scored_ahead'])),
  };
}

const bitsOf = ({ states, scores }: Bits): Bits => ({ states, scores });

const result = async ({ runId }: StartedRun, id: string) =>
  (await needRecord(loop.store, keys.result(runId, id), resultRecord)).record;

/** The sampling worker stands when one of its samples has this many tokens: others are shorter. */
const longSample = 300;

function stands(id: string): Promise<Standing> {
  return inject.stands(id, AbortSignal.timeout(patienceMs));
}

/** Lets the processes go on that no kill has ended. */
function thaw(...standing: readonly Standing[]): void {
  for (const { identity } of standing) if (identity !== undefined) signalProcess(identity, 'SIGCONT');
}

const alive = ({ identity }: Standing) => identity !== undefined && isAlive(identity);

/**
 * Resolves when both stand: the sampling worker in the middle of the only job of the first iteration, a scorer at its
 * first sample.
 */
async function bothStand(): Promise<{ run: StartedRun; sampling: Standing; scoring: Standing }> {
  const [scorer, sampler] = [`scorer-${++tries}`, `sampler-${tries}`];
  inject.arm({ id: scorer, point: 'score.sample', action: 'stand' });
  inject.arm({ id: sampler, point: 'sample.token', facts: { position: longSample }, action: 'stand' });
  const run = await loop.start(base);
  const [sampling, scoring] = await Promise.all([stands(sampler), stands(scorer)]);
  for (const id of [scorer, sampler]) inject.disarm(id);
  return { run, sampling, scoring };
}

/** The calls of the scorer, as the names of the samples. */
const callsOf = async (run: StartedRun) =>
  (await loop.lines(run)).flatMap((line) => /scorer, (draw \d+ row \d+ #\d+): called/.exec(line)?.[1] ?? []);

describe('with one rollout job in an iteration', () => {
  it('the scorer is called before the rollout job has a result, and once for every sample', async () => {
    const { run, sampling, scoring } = await bothStand();
    const results = await loop.store.children(keys.results(run.runId));
    expect(results.filter((key) => key.includes('rollout-') || key.includes('reward-'))).toEqual([]);
    thaw(sampling, scoring);
    await loop.reaches(run, 'completed');
    const found = await outcome(run);
    expect(bitsOf(found)).toEqual(undisturbed);
    expect(found.ahead).toHaveLength(1);
    expect(Math.min(...found.ahead)).toBeGreaterThan(0);
    expect(found.metric).toEqual(found.ahead);
    const calls = await loop.until(run, 'all calls in the log', async () => {
      const all = await callsOf(run);
      return all.length >= 32 && all;
    });
    expect(calls.toSorted()).toEqual([...new Set(calls)].toSorted());
    expect(calls).toHaveLength(32);
  });

  it('a killed sampling worker: its samples are not scored again, and the bits are the same', async () => {
    const { run, sampling, scoring } = await bothStand();
    thaw(scoring);
    if (sampling.identity === undefined) throw new Error('it stands');
    await kill(sampling.identity);
    await loop.reaches(run, 'completed');
    expect(bitsOf(await outcome(run))).toEqual(undisturbed);
    const calls = await loop.until(run, 'all calls in the log', async () => {
      const all = await callsOf(run);
      return all.length >= 32 && all;
    });
    expect(calls).toHaveLength(32);
  });

  it('a killed reward worker: its successor scores its samples, and the bits are the same', async () => {
    const { run, sampling } = await bothStand();
    await kill(loop.process('score-1'));
    thaw(sampling);
    await loop.reaches(run, 'completed');
    expect(bitsOf(await outcome(run))).toEqual(undisturbed);
  });

  it('a cancelled run ends the scoring', async () => {
    const { run, sampling, scoring } = await bothStand();
    await loop.tell(run, 'cancel');
    thaw(sampling);
    await loop.reaches(run, 'cancelled');
    await loop.until(run, 'the end of its scorer', async () => !alive(scoring));
  });
});
