/**
 * Records as the first version wrote them, read as today's. tests/black-box/kept-store.test.ts reads a whole store of
 * it.
 */
import { describe, expect, it } from 'vitest';
import { partsOf } from './state-parts.ts';
import {
  batchDecision,
  checkpointManifest,
  resultRecord,
  runRecord,
  termRecord,
  updateDecision,
  weightsManifest,
} from './schema.ts';

const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [string, string, string];
const writer = { process: 'p', at: 't' };
const place = { format: 1, runId: 'toy', term: 1 };
const counters = { cursor: 8, optimizerSteps: 2, badSteps: 1, klCoef: 0.5 };
const countersNow = { cursor: 8, optimizerSteps: { actor: 2 }, badSteps: 1, controllers: { klCoef: 0.5 } };
const profile = {
  id: 'det-1',
  compute: 'fp32',
  deterministic: true,
  isa: 'avx2',
  engine: 'e',
  maxTokensPerMicroBatch: 64,
};
const { isa: _, ...rest } = profile;
const profileNow = { ...rest, engine: 'native', device: 'avx2', build: 'e' };
const loss = {
  kind: 'policy',
  lossMode: 'vanilla',
  clipRatioLow: 0.2,
  clipRatioHigh: 0.2,
  clipRatioC: 3,
  lossAggMode: 'token-mean',
  entropyCoeff: 0,
  useKlLoss: false,
  klLossCoef: 0,
  klLossType: 'k1',
  temperature: 1,
  lossScaleFactor: 1,
};
const optimizer = { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0, maxGradNorm: 1 };
const steps = [{ lr: 1e-4, gradNorm: 1, taken: true }];
const seal = { ...place, iteration: 3, parent: a, owner: 's', reason: 'r', writer };

describe('a record of format 1', () => {
  it('of a run that is a fork has its counters by component', () => {
    const origin = { runId: 'base', position: 2, stateDigest: a, skippedDraws: [] };
    const run = { format: 1, runId: 'toy', name: 'toy', kind: 'rl', createdAt: 't', origin: { ...origin, counters } };
    expect(runRecord.parse(run)).toMatchObject({ format: 3, origin: { ...origin, counters: countersNow } });
  });

  it('of a term names the state and the profile of the actor', () => {
    const own = { startState: a, revision: 1, owner: 's', reason: 'start', skippedDraws: [], writer };
    const term = { ...place, ...own, startWeights: b, profile, base: { position: 2, counters } };
    expect(termRecord.parse(term)).toEqual({
      ...place,
      ...own,
      format: 3,
      base: { position: 2, counters: countersNow },
      components: { actor: { stateDigest: a, weightsDigest: b, profile: profileNow } },
    });
  });

  it('of a batch says how the actor is trained; a seal in its place stays one', () => {
    const own = {
      iteration: 3,
      parent: a,
      parentState: b,
      revision: 1,
      tensors: c,
      oldLogProbs: 'stored',
      results: [],
      draws: [],
      metrics: {},
      timings: {},
      decision: 'train',
      writer,
    };
    const trained = { profile: 'det-1', learningRates: [1e-4], loss, optimizer };
    expect(batchDecision.parse({ ...place, ...own, ...trained, before: counters, after: counters })).toEqual({
      ...place,
      ...own,
      format: 3,
      before: countersNow,
      after: countersNow,
      components: { actor: trained },
    });
    expect(batchDecision.parse({ ...seal, decision: 'seal' })).toEqual({ ...seal, format: 3, decision: 'seal' });
  });

  it('of an update has the actor’s new state, steps and publication; a seal in its place stays one', () => {
    const own = { iteration: 3, batch: c, parentState: c, outcome: 'applied', metrics: {}, timings: {}, writer };
    const update = { ...place, ...own, stateDigest: a, weightsDigest: b, steps, after: counters };
    expect(updateDecision.parse(update)).toEqual({
      ...place,
      ...own,
      format: 3,
      stateDigest: a,
      after: countersNow,
      components: { actor: { stateDigest: a, weightsDigest: b, steps, publications: { F32: b } } },
    });
    expect(updateDecision.parse({ ...seal, outcome: 'seal' })).toEqual({ ...seal, format: 3, outcome: 'seal' });
  });

  it('of a checkpoint and of published weights has the actor’s shards', () => {
    const shards = [{ blob: c, bytes: 8, tensors: [{ name: 'weights', start: 0, end: 2 }] }];
    const parameters = [{ name: 'w', shape: [2] }];
    const state = { iteration: 3, stateDigest: a };
    expect(
      checkpointManifest.parse({ ...place, ...state, weightsDigest: b, shards, parameters, state: { steps: 2 } }),
    ).toEqual({
      ...place,
      ...state,
      format: 3,
      components: { actor: { stateDigest: a, weightsDigest: b, steps: 2, parts: partsOf(2), shards, parameters } },
    });
    expect(weightsManifest.parse({ format: 1, weightsDigest: b, dtype: 'F32', shards })).toEqual({
      format: 3,
      component: 'actor',
      weightsDigest: b,
      dtypes: { weights: 'F32' },
      shards,
    });
  });

  it.each([
    ['open', { stateDigest: a, weightsDigest: b, profile }, { actor: { weightsDigest: b, profile } }],
    [
      'advantage',
      { tensors: c, learningRates: [1], loss, optimizer, after: counters },
      { actor: { learningRates: [1], loss, optimizer } },
    ],
    ['update', { outcome: 'applied', stateDigest: a, weightsDigest: b, steps, after: counters }, { actor: { steps } }],
  ])('of the result of %s answers by component', (stage, output, components) => {
    const result = { format: 1, jobId: 'j', stage, output, timings: {}, writer };
    const read = resultRecord.parse(result).output;
    expect(read).toMatchObject({ components });
    if ('after' in output) expect(read['after']).toEqual(countersNow);
  });

  it('of another format, or none at all, is refused', () => {
    for (const format of [0, 3, undefined, '1']) expect(termRecord.safeParse({ format }).success).toBe(false);
    for (const stored of [null, 1, 'x', []]) expect(updateDecision.safeParse(stored).success).toBe(false);
  });
});
