import { describe, expect, it } from 'vitest';
import { endedSamples, mostTokensTold } from '../core/wire/ended-samples.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import { singleTurn } from '../models/trajectories.ts';
import type { Trajectories } from '../models/trajectories.ts';
import { tellOfSamples } from './ended-samples.ts';
import { sampleAt, SampleKeys, samplesIn } from './reward/ahead-samples.ts';

const job: JobMessage = {
  v: 1,
  jobId: 'rollout-1',
  stage: 'rollout',
  runId: 'run',
  at: { term: 1, iteration: 0 },
  store: 'file:///s',
  input: {},
  scoring: { timeoutMs: 1 },
};
const sample = (n: number, tokens: number) => ({ draw: 4, row: 2, sample: n, tokens: new Int32Array(tokens).fill(n) });

function told(samples: readonly ReturnType<typeof sample>[], scorer: string | undefined = 'w-1', message = job) {
  const sent: { subject: string; samples: ReturnType<typeof samplesIn> }[] = [];
  const publish = (subject: string, text: string) =>
    sent.push({ subject, samples: samplesIn(endedSamples.parse(JSON.parse(text))) });
  tellOfSamples(message, { scorer, publish })(samples);
  return sent;
}

describe('samples that have ended', () => {
  it('are told to one reward worker', () => {
    expect(told([sample(0, 3), sample(1, 2)])).toEqual([
      { subject: 'ended.w-1', samples: [sample(0, 3), sample(1, 2)] },
    ]);
  });

  it('are told to nobody without a reward worker, and of a job that does not say how they are scored', () => {
    const { scoring: _, ...without } = job;
    expect(told([sample(0, 3)], '', without)).toEqual([]);
    const sent: string[] = [];
    tellOfSamples(job, { scorer: undefined, publish: (subject) => sent.push(subject) })([sample(0, 3)]);
    expect(sent).toEqual([]);
  });

  it('are divided into messages of a limited size; one that is too long is left to the reward job', () => {
    const half = Math.floor(mostTokensTold / 2) + 1;
    const sent = told([sample(0, half), sample(1, half), sample(2, 1), sample(3, mostTokensTold + 1)]);
    expect(sent.map(({ samples }) => samples.map((one) => one.sample))).toEqual([[0], [1, 2]]);
  });

  it('have the keys that their reward job finds in the trajectories', () => {
    const keys = new SampleKeys('host', { model: 'm', dataset: 'd' });
    const offsets = Int32Array.of(0, 2, 3);
    const trajectories: Trajectories = {
      weightsDigest: 'w',
      drawOffsets_G1: Int32Array.of(0, 2),
      draw_S: Int32Array.of(4, 4),
      row_S: Int32Array.of(2, 2),
      promptTokens: Int32Array.of(5),
      promptOffsets_P1: Int32Array.of(0, 1),
      prompt_S: Int32Array.of(0, 0),
      responseTokens_T: Int32Array.of(7, 7, 8),
      responseOffsets_S1: offsets,
      logProbs_T: new Float32Array(3),
      samplingLogProbs_T: new Float32Array(3),
      ...singleTurn(offsets, Int32Array.of(8, 9), 1),
      stopReason_S: Uint8Array.of(1, 1),
    };
    const first = { draw: 4, row: 2, sample: 8, tokens: Int32Array.of(7, 7) };
    expect(keys.of(sampleAt(trajectories, 0))).toBe(keys.of(first));
    expect(keys.of(sampleAt(trajectories, 1))).not.toBe(keys.of(first));
    const others = [
      { ...first, row: 3 },
      { ...first, sample: 9 },
      { ...first, tokens: Int32Array.of(7) },
    ];
    for (const other of others) expect(keys.of(other)).not.toBe(keys.of(first));
    expect(new SampleKeys('another', { model: 'm', dataset: 'd' }).of(first)).not.toBe(keys.of(first));
  });
});
