import { describe, expect, it } from 'vitest';
import type { DecodedTokens, Sampler } from '../../../core/ports/sampler.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import type { ScoreTable } from '../../../core/wire/score-table.ts';
import { singleTurn } from '../../../models/trajectories.ts';
import type { Trajectories } from '../../../models/trajectories.ts';
import { Generation } from '../generation/generation.ts';
import type { SampleRequest } from '../generation/generation.ts';
import { encodeTokens } from '../generation/lineage.ts';
import { compose } from '../samples/samples.ts';

const request: SampleRequest = {
  prompt: Int32Array.of(5),
  draw: 40,
  sample: 0,
  turn: 0,
  settings: {
    runId: 'run-1',
    sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: 1,
    stopTokens: new Int32Array(),
    seed: [1, 2],
  },
};

/** One token for the one sample, which it ends. */
const step: DecodedTokens = {
  keys: Int32Array.of(1),
  tokens: Int32Array.of(7),
  logProbs: Float32Array.of(-1),
  samplingLogProbs: Float32Array.of(-2),
  finish: Uint8Array.of(2),
};

/** A sampler that gives this for the first sample. */
async function samplerOf(decoded: DecodedTokens): Promise<Sampler> {
  return {
    exited: new Promise(() => {}),
    makeRoom: async () => {},
    generate: async function* () {
      yield decoded;
    },
    abort: async () => {},
    pause: async () => {},
    resume: async () => {},
    close: async () => {},
  };
}

const trajectories: Trajectories = {
  weightsDigest: 'w',
  drawOffsets_G1: Int32Array.of(0, 1, 2),
  draw_S: Int32Array.of(40, 41),
  row_S: Int32Array.of(0, 1),
  promptTokens: Int32Array.of(5, 6),
  promptOffsets_P1: Int32Array.of(0, 1, 2),
  prompt_S: Int32Array.of(0, 1),
  responseTokens_T: Int32Array.of(7, 8),
  responseOffsets_S1: Int32Array.of(0, 1, 2),
  logProbs_T: Float32Array.of(-1, -1),
  samplingLogProbs_T: Float32Array.of(-1, -1),
  ...singleTurn(Int32Array.of(0, 1, 2), Int32Array.of(0, 0), 1),
  stopReason_S: Uint8Array.of(1, 1),
};
const table = (scores: (number | null)[]): ScoreTable => ({
  trajectories: 'a'.repeat(64),
  scores,
  reasons: scores.map(() => null),
  columns: {},
});
const input = { iteration: 1, algorithm: { maxFailedFraction: 1 } } as AdvantageInput;

describe('an engine that leaves out a value of a sample', () => {
  it('is not needed for a whole step: all values arrive', async () => {
    const { completion, ended } = new Generation(samplerOf(step)).sample(request);
    await ended;
    expect(completion).toEqual({ tokens: [7], logProbs: [-1], samplingLogProbs: [-2], stopReason: 2 });
  });

  it.each([
    ['token', { tokens: new Int32Array() }],
    ['log-prob', { logProbs: new Float32Array() }],
    ['sampling log-prob', { samplingLogProbs: new Float32Array() }],
    ['end', { finish: new Uint8Array() }],
  ])('fails the sample when the %s is missing; nothing is put in its place', async (_, lack) => {
    const { ended } = new Generation(samplerOf({ ...step, ...lack })).sample(request);
    await expect(ended).rejects.toThrow('no element 0 in a list of 0');
  });
});

describe('a missing element', () => {
  it('of the stream: a sample whose tokens do not come is not whole', async () => {
    const { ended } = new Generation(samplerOf({ ...step, keys: Int32Array.of(7) })).sample(request);
    await expect(ended).rejects.toThrow('the sampler ended before its sample');
  });

  it('of the journal: a token without its log-prob is not written', () => {
    const run = { tokens: [7, 8], logProbs: [-1], samplingLogProbs: [-1, -1] };
    expect(() => encodeTokens(run, 0, 2)).toThrow(RangeError);
  });

  it('of the scores: a sample without an entry is not trained with score 0', () => {
    const whole = compose(input, [{ wave: 0, trajectories, scores: table([1, 0.5]) }], 'run-1');
    expect(whole.samples.map(({ score }) => score)).toEqual([1, 0.5]);
    expect(() => compose(input, [{ wave: 0, trajectories, scores: table([1]) }], 'run-1')).toThrow(RangeError);
  });
});
