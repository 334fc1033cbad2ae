/** How the stages rollout and reward pass facts to advantage, on a real store. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunLog } from '../infra/store/run-log.ts';
import { getJsonBlob, putJsonBlob } from '../infra/store/blobs.ts';
import { keys } from '../core/records/keys.ts';
import { cliHome } from './cli.ts';
import { buildRun } from './run-builder.ts';
import type { ScoredRollout } from '../activities/sampling/scored-rollouts.ts';
import { putRewards, putRollouts, readFacts, removeFacts } from '../activities/stage-facts.ts';

const home = cliHome();
const ports = { getJsonBlob, putJsonBlob };
let log: RunLog;
beforeAll(async () => {
  log = (await buildRun(await home.store())).log;
});
afterAll(() => home.remove());

const digestOf = (n: number) => n.toString(16).padStart(64, '0');
const endedAt = '2026-01-01T00:00:10.000Z';
const scoredRollout = (n: number, wave = 0): ScoredRollout => ({
  wave,
  trajectories: digestOf(n),
  scores: digestOf(n + 100),
  samples: 4,
  responseTokens: 40 + n,
  failed: n,
  rollout: { jobId: `rollout-${n}`, timings: { generate: 0.5, load: 'NaN' }, span: undefined },
  reward: {
    jobId: `reward-${n}`,
    timings: { 'timing_s/reward': 2 },
    span: { from: Date.parse(endedAt) - 2000, until: Date.parse(endedAt) },
  },
});
const rolloutsOf = (scored: readonly ScoredRollout[]) =>
  putRollouts(
    ports,
    log,
    scored.map(({ rollout, trajectories, samples, responseTokens }) => ({
      jobId: rollout.jobId,
      output: { trajectories, samples, responseTokens, promptTokens: 8 },
      timings: rollout.timings,
    })),
  );

it('two facts give the scored rollouts back, in order', async () => {
  const scored = [1, 2, 3].map((n) => scoredRollout(n));
  const facts = { rollouts: await rolloutsOf(scored), rewards: await putRewards(ports, log, scored) };
  expect(await readFacts(ports, log, facts)).toEqual(scored);
});

it('the fact of the rewards has the rollouts of later waves and of greedy responses', async () => {
  const { wave: _, ...baseline } = scoredRollout(5);
  const scored = [{ ...scoredRollout(1), baseline }, scoredRollout(2), scoredRollout(3, 1), scoredRollout(4, 2)];
  const facts = { rollouts: await rolloutsOf(scored.slice(0, 2)), rewards: await putRewards(ports, log, scored) };
  expect(await readFacts(ports, log, facts)).toEqual(scored);
});

it('facts of different attempts are not joined', async () => {
  const [one, two, three] = [1, 2, 3].map((n) => scoredRollout(n)) as [ScoredRollout, ScoredRollout, ScoredRollout];
  for (const [sampled, rewarded] of [
    [
      [one, two],
      [one, three],
    ],
    [[one, two], [one]],
    [[one], [one, two]],
    [
      [one, two],
      [two, one],
    ],
  ] as const) {
    const facts = { rollouts: await rolloutsOf(sampled), rewards: await putRewards(ports, log, rewarded) };
    expect(await readFacts(ports, log, facts)).toBe(undefined);
  }
});

it('facts that are missing, damaged, or were never written are not used', async () => {
  const scored = [scoredRollout(4)];
  const facts = { rollouts: await rolloutsOf(scored), rewards: await putRewards(ports, log, scored) };
  expect(await readFacts(ports, log, {})).toBe(undefined);
  expect(await readFacts(ports, log, { rollouts: facts.rollouts })).toBe(undefined);
  await log.store.put(keys.blob(log.runId, facts.rewards), new TextEncoder().encode('[]'));
  expect(await readFacts(ports, log, facts)).toBe(undefined);
  await removeFacts(log, facts);
  expect(await readFacts(ports, log, facts)).toBe(undefined);
  expect(await log.store.head(keys.blob(log.runId, facts.rollouts))).toBe(undefined);
});
