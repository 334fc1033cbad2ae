/**
 * The estimator spo: what each prompt has scored is the baseline of its next response, and decides whether it is
 * chosen.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import type { Counters } from '../../core/records/schema.ts';
import { drawsPast } from '../../core/rl/draws.ts';
import { promptRate, promptSamplingWeight, rhoOf, updateTracker } from '../../core/rl/spo-tracker.ts';
import { chooseByWeight } from '../../core/rl/weighted-choice.ts';
import { decodeTrackers, responsesBlob, trackersBlob } from '../../core/wire/prompt-trackers.ts';
import type { TrackedPrompt } from '../../core/wire/prompt-trackers.ts';
import { keys } from '../../core/records/keys.ts';
import { sweepStore } from '../../log/retention/sweep.ts';
import { getBlob, getJsonBlob } from '../../log/objects/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { decodeLastResponses } from '../../models/last-responses.ts';
import { essencesOf } from '../essences.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const recipe: Tree = {
  algorithm: { adv_estimator: 'spo', spo: { rho: { clip_lower: 0.5 } } },
  actor: { optim: { lr: 0.01 } },
  rollout: { n: 1 },
  // 9 rows: a pass over them takes one and a half iterations.
  data: { train_max_samples: 9, gen_batch_size: 6 },
  trainer: { total_training_steps: 6, save_freq: 2 },
};

const loop = new InProcessLoop(sevens);
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  undisturbed = await loop.completed(recipe);
});
afterAll(() => loop.remove());

async function trackersOf({ log: { runId } }: RunInProcess, counters: Counters) {
  const blob = trackersBlob(counters);
  return blob === undefined
    ? new Map<number, TrackedPrompt>()
    : decodeTrackers(await getJsonBlob(loop.store, runId, blob), blob);
}

const start = { alpha: 0.5, beta: 0.5 };

describe('a run with the estimator spo (seed 42)', () => {
  it('chooses the prompts of a batch among the next ones by how uncertain they are', async () => {
    for (const { batch } of undisturbed.iterations) {
      const trackers = await trackersOf(undisturbed, batch.before);
      expect(batch.after.cursor).toBe(batch.before.cursor + 6);
      const next = drawsPast({ rows: 9, seed: 42, shuffle: true }, batch.before.cursor, 6, []);
      const weights = next.map(({ row }) => promptSamplingWeight(trackers.get(row) ?? start));
      const chosen = chooseByWeight(
        weights,
        next.map(({ draw }) => draw),
        4,
        [42, 4],
      );
      expect(batch.draws.map(({ draw, row }) => [draw, row])).toEqual(chosen.map((i) => [next[i]?.draw, next[i]?.row]));
      const passed = (batch.passedOver ?? []).reduce((sum, [from, to]) => sum + to - from, 0);
      expect(passed).toBe(2);
    }
  });

  it('counts each score, and the past the less the more the policy has moved on the last response', async () => {
    let moved = 0;
    for (const { batch } of undisturbed.iterations) {
      const [before, after] = [await trackersOf(undisturbed, batch.before), await trackersOf(undisturbed, batch.after)];
      const tensors = decodeBatch(await getBlob(loop.store, undisturbed.log.runId, batch.tensors), 'batch');
      const rows = new Set(batch.draws.map(({ row }) => row));
      for (const [row, tracked] of before) if (!rows.has(row)) expect(after.get(row)).toEqual(tracked);
      // A row can be drawn twice, at the end of a pass and at the begin of the next.
      for (const row of rows) {
        const scores = batch.draws.flatMap((draw) =>
          draw.row === row ? draw.samples.map((place) => Number(tensors.rewards_S[Number(place)])) : [],
        );
        const old = before.get(row) ?? start;
        const sum = scores.reduce((total, score) => total + score, 0);
        const now = after.get(row)!;
        const rho = (now.alpha - sum) / old.alpha;
        expect((now.beta - scores.length + sum) / old.beta).toBeCloseTo(rho, 6);
        expect(rho).toBeGreaterThanOrEqual(0.5 - 1e-9);
        expect(rho).toBeLessThanOrEqual(0.96 + 1e-9);
        if (!before.has(row)) expect(rho).toBeCloseTo(0.96, 6);
        else if (rho < 0.95) moved++;
      }
      expect(batch.metrics['spo/first_sampled_ratio']).toBeCloseTo(
        [...rows].filter((row) => !before.has(row)).length / rows.size,
        9,
      );
    }
    expect(moved).toBeGreaterThan(0);
  });

  it('keeps the last response to each row, with its log-probs when it was sampled', async () => {
    const last = undisturbed.iterations.at(-1)!.batch.after;
    const trackers = await trackersOf(undisturbed, last);
    const kept = new Set<number>();
    for (const part of new Set([...trackers.values()].map((one) => one.part!))) {
      const blob = responsesBlob(last, part);
      for (const one of decodeLastResponses(await getBlob(loop.store, undisturbed.log.runId, blob), blob)) {
        if (trackers.get(one.row)?.part !== part) continue;
        kept.add(one.row);
        expect(one.logProbs.length).toBe(one.response.length);
        expect(one.logProbs.every((value) => value < 0)).toBe(true);
      }
    }
    expect(kept).toEqual(new Set(trackers.keys()));
    const named = Object.keys(last.controllers).filter((name) => name.startsWith('spo.'));
    expect(new Set(named)).toEqual(new Set([...trackers.values()].map(({ part }) => `spo.${part}`)));
  });

  it('has advantages that are the scores less these rates, standardised over the batch', async () => {
    for (const { batch } of undisturbed.iterations) {
      const before = await trackersOf(undisturbed, batch.before);
      const tensors = decodeBatch(await getBlob(loop.store, undisturbed.log.runId, batch.tensors), 'batch');
      const surplus: number[] = [];
      for (const { row, samples } of batch.draws)
        for (const place of samples)
          surplus[Number(place)] = tensors.rewards_S[Number(place)]! - promptRate(before.get(row) ?? start);
      const mean = surplus.reduce((sum, one) => sum + one, 0) / surplus.length;
      const std = Math.sqrt(surplus.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (surplus.length - 1));
      surplus.forEach((one, s) =>
        expect(tensors.advantages_T[tensors.scoredOffsets_S1[s]!]).toBeCloseTo((one - mean) / (std + 1e-8), 4),
      );
    }
  });

  it('gives a fork what it remembers', async () => {
    const fork = await loop.forkedAfter(undisturbed, 4);
    const states = (run: RunInProcess) => essencesOf(run.iterations).map(({ state, draws }) => ({ state, draws }));
    expect(states(fork)).toEqual(states(undisturbed).slice(4));
  });

  it('loses no blob that it needs when a janitor removes what the floor frees', async () => {
    const trainer = { total_training_steps: 6, save_freq: 2, max_actor_ckpt_to_keep: 1 };
    let removed = 0;
    const sweepTwice = async () => {
      for (let pass = 0; pass < 2; pass++) {
        const { runs } = await sweepStore(loop.store, { now: new Date(), graceMs: 0 });
        expect(runs.map(({ problem }) => problem).filter((problem) => problem !== undefined)).toEqual([]);
        removed += runs.length;
      }
    };
    const run = await loop.completed(
      { ...recipe, trainer },
      { committed: async (position) => void (position === 5 && (await sweepTwice())) },
    );
    expect(removed).toBeGreaterThan(0);
    expect(essencesOf(run.iterations).at(-1)).toEqual(essencesOf(undisturbed.iterations).at(-1));
    const last = run.iterations.at(-1)!.batch.after;
    for (const [name, state] of Object.entries(last.controllers))
      if (typeof state === 'object')
        expect([name, await loop.store.head(keys.blob(run.log.runId, state.blob))]).not.toContain(undefined);
  });

  it('with a constant factor and several responses counts the past once, and keeps no responses', async () => {
    const run = await loop.completed({
      ...recipe,
      algorithm: { adv_estimator: 'spo', spo: { rho: { type: 'constant', value: 0.75 } } },
      rollout: { n: 2 },
      data: { train_max_samples: 4 },
      trainer: { total_training_steps: 2 },
    });
    const made = run.iterations;
    for (const { batch } of made) {
      expect(Object.keys(batch.after.controllers).filter((name) => name.startsWith('spo'))).toEqual(['spo']);
      const [before, after] = [await trackersOf(run, batch.before), await trackersOf(run, batch.after)];
      const tensors = decodeBatch(await getBlob(loop.store, run.log.runId, batch.tensors), 'batch');
      for (const { row, samples } of batch.draws) {
        const [first, second] = samples.map((place) => tensors.rewards_S[Number(place)]!);
        const wanted = updateTracker(updateTracker(before.get(row) ?? start, first!, 0.75), second!, 1);
        expect(after.get(row)?.alpha).toBeCloseTo(wanted.alpha, 9);
        expect(after.get(row)?.beta).toBeCloseTo(wanted.beta, 9);
        expect(after.get(row)?.responses).toBe((before.get(row)?.responses ?? 0) + 2);
      }
    }
    expect(rhoOf(0, { lowest: 0 })).toBe(0.96);
  });

  it('writes the last responses into one blob when there would be too many', async () => {
    // 24 rows, one in each batch, which leaves a blob of one response.
    const run = await loop.completed({
      ...recipe,
      data: { train_batch_size: 1 },
      rollout: { n: 2 },
      actor: { ppo_mini_batch_size: 1 },
      trainer: { total_training_steps: 20, save_freq: 5 },
    });
    const parts: number[] = [];
    for (const { batch } of run.iterations) {
      const trackers = await trackersOf(run, batch.after);
      const named = Object.keys(batch.after.controllers).filter((name) => name.startsWith('spo.'));
      parts.push(named.length);
      const kept = new Set<number>();
      for (const name of named) {
        const part = Number(name.slice('spo.'.length));
        const blob = responsesBlob(batch.after, part);
        for (const { row } of decodeLastResponses(await getBlob(loop.store, run.log.runId, blob), blob))
          if (trackers.get(row)?.part === part) kept.add(row);
      }
      expect(kept).toEqual(new Set(trackers.keys()));
    }
    expect(Math.max(...parts)).toBeLessThanOrEqual(16);
    expect(parts.some((count, k) => k > 0 && count < parts[k - 1]! - 5)).toBe(true);
  });

  it('pauses for a score that is no share of a success', async () => {
    const run = loop.completed(recipe, { score: ({ solutionStr }) => (solutionStr.includes('7') ? 1 : -1) });
    await expect(run).rejects.toMatchObject({ kind: 'pause', code: 'AccuracyOutOfRange' });
  });
});
