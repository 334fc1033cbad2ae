import { readFileSync } from 'node:fs';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { metricInfo } from '../../core/metrics.ts';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord, weightsManifest } from '../../core/records/schema.ts';
import { drawsPast } from '../../core/rl/draws.ts';
import { builtFile } from '../../infra/home.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { getBlob } from '../../log/objects/blobs.ts';
import { readRecord } from '../../log/objects/records.ts';
import { dataConverterOf } from '../../infra/temporal/connection.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

const iterations = 4;
const loop = LoopUnderTest.onLentStack();
let run: StartedRun;
let made: Iteration[];
beforeAll(async () => {
  await loop.up();
  run = await loop.start({
    data: { val_files: loop.validationFile },
    trainer: { val_before_train: true, test_freq: 2, save_freq: 2, total_training_steps: iterations },
  });
  await loop.reaches(run, 'completed');
  made = await loop.iterations(run);
});
afterAll(() => loop.remove());

describe('a run of four iterations (seed 42)', () => {
  it('ends as completed, in the store and in its workflow', async () => {
    expect(await loop.ended(run)).toEqual({ state: 'completed', position: iterations });
    expect(await run.log.status.newest()).toMatchObject({ state: 'completed', wish: 'run' });
    expect(made).toHaveLength(iterations);
  });

  it('is a chain: every record names its predecessor by digest, and the states match', async () => {
    const term = await run.log.newestTerm();
    let [parent, state] = [term?.digest, term?.record.startState];
    for (const { batch, batchDigest, update, updateDigest } of made) {
      expect(batch).toMatchObject({
        parent,
        parentState: state,
        decision: 'train',
        components: { actor: { profile: term && actorOf(term.record.components).profile.id } },
      });
      expect(update).toMatchObject({ batch: batchDigest, parentState: state, outcome: 'applied' });
      [parent, state] = [updateDigest, update.stateDigest];
    }
    expect(new Set(made.map(({ update }) => update.stateDigest)).size).toBe(iterations);
  });

  it('gives every draw one outcome and every sample one place', async () => {
    const stream = { rows: (await run.log.revision()).inputs.trainRows, seed: 42, shuffle: true };
    const outcomes = made.flatMap(({ batch }) => batch.draws);
    expect(outcomes.map(({ draw, row }) => ({ draw, row }))).toEqual(
      drawsPast(stream, 0, iterations * 4, []).map(({ draw, row }) => ({ draw, row })),
    );
    expect(new Set(outcomes.map(({ fate }) => fate))).toEqual(new Set(['trained']));
    for (const { batch } of made)
      expect(batch.draws.flatMap(({ samples }) => samples)).toEqual(Array.from({ length: 16 }, (_, b) => b));
  });

  it('advances its counters from record to record', () => {
    made.forEach(({ batch, update }, i) => {
      expect(batch.before).toMatchObject({ cursor: 4 * i, optimizerSteps: i === 0 ? {} : { actor: i }, badSteps: 0 });
      expect(batch.after).toMatchObject({ cursor: 4 * (i + 1), optimizerSteps: { actor: i + 1 } });
      expect(update.after).toEqual({ ...batch.after, badSteps: 0 });
    });
  });

  it('validates the base, when due, and the end', async () => {
    const evaluations = await run.log.evaluations.all();
    expect(evaluations.map(({ iteration }) => iteration)).toEqual([0, 2, 4]);
    for (const { iteration, weightsDigest, questions } of evaluations) {
      expect(questions).toBe(5);
      expect(weightsDigest).toBe((await run.log.at(iteration)).weightsDigest);
    }
  });

  it('saves checkpoints when due, and the end: its digest is the last update’s', async () => {
    const checkpoints = await run.log.checkpoints.all();
    expect(checkpoints.map(({ record }) => record.iteration)).toEqual([4, 2]);
    expect(checkpoints[0]?.record).toMatchObject({
      stateDigest: made.at(-1)?.update.stateDigest,
      components: { actor: { weightsDigest: actorOf(made.at(-1)?.update.components ?? {}).weightsDigest } },
    });
  });

  it('reports finite numbers under names of the closed table', async () => {
    const records = [
      ...made.flatMap(({ batch, update }) => [batch.metrics, batch.timings, update.metrics, update.timings]),
      ...(await run.log.evaluations.all()).map(({ metrics }) => metrics),
    ];
    const names = new Set(records.flatMap((values) => Object.keys(values)));
    expect([...names].filter((name) => metricInfo(name) === undefined)).toEqual([]);
    const strange = records.flatMap((values) =>
      Object.entries(values).filter(([, value]) => typeof value !== 'number'),
    );
    expect(strange).toEqual([]);
    expect(made.every(({ update }) => Number(update.metrics['actor/grad_norm']) > 0)).toBe(true);
  });

  it('learns: the share of sevens rises', () => {
    const scores = made.map(({ batch }) => Number(batch.metrics['critic/score/mean']));
    expect(scores.at(-1)).toBeGreaterThan(scores[0] ?? 1);
  });

  it('names existing results and a readable batch', async () => {
    for (const { batch } of made) {
      for (const jobId of batch.results)
        expect(await readRecord(loop.store, keys.result(run.runId, jobId), resultRecord)).toBeDefined();
      const tensors = decodeBatch(await getBlob(loop.store, run.runId, batch.tensors), 'batch');
      expect(tensors.rewards_S).toHaveLength(16);
      expect(tensors.oldLogProbs_T).toBeUndefined();
      expect(tensors.scored_T.length).toBe(tensors.advantages_T.length);
    }
  });

  it('publishes no weights: the only rollout worker is the trainer', async () => {
    for (const { update } of made)
      expect(
        await readRecord(
          loop.store,
          keys.weights(run.runId, actorOf(update.components).weightsDigest),
          weightsManifest,
        ),
      ).toBeUndefined();
  });

  it('writes its main events to the log', async () => {
    await loop.said(run, /completed/);
    expect(await loop.lines(run)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^debug control: opened term 1: fp32 deterministic on /),
        expect.stringMatching(/^info control: iteration 4, reward [\d.]+, grad norm [\d.]+$/),
        expect.stringMatching(/^info control: validation of policy 0: score [\d.]+ on 5 questions$/),
      ]),
    );
  });

  it('replays from its history with the current workflow code', async () => {
    const history = await loop.client.workflow.getHandle(run.runId).fetchHistory();
    Runtime.install({ logger: new DefaultLogger('ERROR') });
    await Worker.runReplayHistory(
      {
        dataConverter: dataConverterOf(loop.supervisor().temporal),
        workflowBundle: { code: readFileSync(builtFile('workflow-bundle.js'), 'utf8') },
      },
      history,
      run.runId,
    );
  });

  it('reports the delay of the event loop of its worker', async () => {
    const workers = await listWorkers(loop.nc);
    expect(workers).toMatchObject([{ worker: 'local-1', loopDelayMs: expect.any(Number) }]);
  });
});
