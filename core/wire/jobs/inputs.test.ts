import { describe, expect, it } from 'vitest';
import { exampleProfile as profile } from '../../records/examples.test-support.ts';
import { jobInput } from './index.ts';

const digest = 'a'.repeat(64);
const reward = {
  trajectories: digest,
  model: digest,
  dataset: digest,
  scorer: { type: 'module', module: digest, fileName: 'score.ts', exportName: 'computeScore', deterministic: true },
  settings: {},
  timeoutMs: 500,
  memoryMb: 512,
  concurrency: 2,
  deterministic: false,
};
const update = { parentState: digest, batch: digest, model: digest, profile, save: true };

const engine = { engine: 'native', compute: 'fp32', deterministic: true, maxTokensPerMicroBatch: 64 };
const schedule = { type: 'constant', lr: 1, warmupSteps: 0, totalSteps: 1 };
const optimizer = { beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0, maxGradNorm: 1 };
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
  klLossType: 'kl',
  temperature: 1,
  lossScaleFactor: 1,
};
const beside = { loss, optimizer, schedule };
const algorithm = {
  seed: [1, 2],
  samplesPerDraw: 2,
  advEstimator: 'grpo',
  normAdvByStd: true,
  maxFailedFraction: 0,
  miniBatchPrompts: 1,
  epochs: 1,
  shuffle: false,
  maxTokensPerMicroBatch: 64,
  maxResponseLength: 8,
  ...beside,
};
const advantage = {
  kind: 'rl',
  iteration: 1,
  parentState: digest,
  weights: digest,
  inputs: { model: digest, train: digest, trainRows: 1 },
  profile,
  draws: [],
  parts: [],
  before: { cursor: 0, optimizerSteps: {}, badSteps: 0, controllers: {} },
  cursorAfter: 0,
  algorithm,
};

describe('the input of a job', () => {
  it('is accepted when every field is valid, also with a generation', () => {
    jobInput('reward', reward);
    jobInput('reward', { ...reward, scorer: { type: 'builtin', revision: '1' }, generation: 2, again: 1 });
    jobInput('update', update);
    jobInput('advantage', advantage);
    jobInput('advantage', { ...advantage, algorithm: { ...algorithm, logZ: beside, rewardModel: beside } });
    jobInput('update', { ...update, components: ['critic'], part: true });
  });

  it.each([
    ['reward', { ...reward, timeoutMs: '500' }, 'timeoutMs'],
    ['reward', { ...reward, scorer: undefined }, 'scorer'],
    ['update', { ...update, batch: '../../etc/passwd' }, 'batch'],
    ['update', { ...update, profile: { ...profile, device: 7 } }, 'profile.device'],
    ['update', { ...update, part: false }, 'part'],
    ['update', { ...update, newer: 1 }, 'newer'],
    ['open', { model: digest, engine: { ...engine, newer: 1 } }, 'engine.newer'],
    ['advantage', { ...advantage, algorithm: { ...algorithm, logZ: { ...beside, loss: 7 } } }, 'algorithm.logZ.loss'],
    [
      'advantage',
      { ...advantage, algorithm: { ...algorithm, rewardModel: { ...beside, newer: 1 } } },
      'algorithm.rewardModel.newer',
    ],
    ['rollout', { draws: 'all' }, 'purpose'],
    ['open', 'no object', 'the input'],
  ] as const)('is refused with the name of the wrong field: %s %#', (stage, input, field) => {
    expect(() => jobInput(stage, input)).toThrow(`a job of the stage ${stage} has a wrong ${field}: `);
  });

  it.each(['', '.', '..', '../score.ts', '/tmp/score.ts', 'a\\score.ts', 'score\0.ts', 'x'.repeat(256)])(
    'must not name a scorer file outside its folder: %j',
    (fileName) => {
      const input = { ...reward, scorer: { ...reward.scorer, fileName } };
      expect(() => jobInput('reward', input)).toThrow('a wrong scorer.fileName: ');
    },
  );

  it.each(['score.ts', '.hidden.py', 'a b (2).mjs', '…'])('may name a scorer file: %j', (fileName) => {
    jobInput('reward', { ...reward, scorer: { ...reward.scorer, fileName } });
  });
});
