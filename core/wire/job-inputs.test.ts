import { describe, expect, it } from 'vitest';
import { checkJobInput } from './job-inputs.ts';

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
const profile = { id: 'p', compute: 'fp32', deterministic: true, isa: 'avx2', engine: 'e', maxTokensPerMicroBatch: 64 };
const update = { parentState: digest, batch: digest, model: digest, profile, save: true };

describe('the input of a job', () => {
  it('is accepted when every field is valid, also with a generation', () => {
    checkJobInput('reward', reward);
    checkJobInput('reward', { ...reward, scorer: { type: 'builtin', revision: '1' }, generation: 2, again: 1 });
    checkJobInput('update', update);
    checkJobInput('update', { ...update, components: ['critic'], part: true });
  });

  it.each([
    ['reward', { ...reward, timeoutMs: '500' }, 'timeoutMs'],
    ['reward', { ...reward, scorer: undefined }, 'scorer'],
    ['update', { ...update, batch: '../../etc/passwd' }, 'batch'],
    ['update', { ...update, profile: { ...profile, isa: 7 } }, 'profile.isa'],
    ['update', { ...update, part: false }, 'part'],
    ['rollout', { draws: 'all' }, 'purpose'],
    ['open', 'no object', 'the input'],
  ] as const)('is refused with the name of the wrong field: %s %#', (stage, input, field) => {
    expect(() => checkJobInput(stage, input)).toThrow(`a job of the stage ${stage} has a wrong ${field}: `);
  });

  it.each(['', '.', '..', '../score.ts', '/tmp/score.ts', 'a\\score.ts', 'score\0.ts', 'x'.repeat(256)])(
    'must not name a scorer file outside its folder: %j',
    (fileName) => {
      const input = { ...reward, scorer: { ...reward.scorer, fileName } };
      expect(() => checkJobInput('reward', input)).toThrow('a wrong scorer.fileName: ');
    },
  );

  it.each(['score.ts', '.hidden.py', 'a b (2).mjs', '…'])('may name a scorer file: %j', (fileName) => {
    checkJobInput('reward', { ...reward, scorer: { ...reward.scorer, fileName } });
  });
});
