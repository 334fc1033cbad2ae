import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import {
  decodeTrajectories,
  encodeTrajectories,
  groupsOf,
  joinTrajectories,
  promptOf,
  singleTurn,
} from './trajectories.ts';
import { at } from '../core/at.ts';
import { offsetsOf } from '../core/offsets.ts';
import type { Trajectories } from './trajectories.ts';

/** Sample s of draw d has a response of (d + s) % 4 tokens, all of them d * 100 + s. */
function made(draws: readonly number[], first: number, n: number): Trajectories {
  const samples = draws.flatMap((draw) => Array.from({ length: n }, (_, i) => ({ draw, sample: first + i })));
  const responses = samples.map(({ draw, sample }) => new Array<number>((draw + sample) % 4).fill(draw * 100 + sample));
  const prompts = draws.map((draw) => [draw, draw + 1]);
  const responseOffsets_S1 = offsetsOf(responses.map((response) => response.length));
  // The policy makes the first token; a tool makes the others.
  const segments = responses.map(({ length }) => (length > 1 ? [1, length] : length === 1 ? [1] : []));
  return {
    weightsDigest: 'w',
    drawOffsets_G1: offsetsOf(draws.map(() => n)),
    draw_S: Int32Array.from(samples, ({ draw }) => draw),
    row_S: Int32Array.from(samples, ({ draw }) => draw * 7),
    promptTokens: Int32Array.from(prompts.flat()),
    promptOffsets_P1: offsetsOf(prompts.map((prompt) => prompt.length)),
    prompt_S: Int32Array.from(samples, ({ draw }) => draws.indexOf(draw)),
    responseTokens_T: Int32Array.from(responses.flat()),
    responseOffsets_S1,
    logProbs_T: Float32Array.from(responses.flat(), (token) => -token),
    samplingLogProbs_T: Float32Array.from(responses.flat(), (token) => -token / 2),
    mask_T: Uint8Array.from(responses.flatMap((response) => response.map((_, t) => (t === 0 ? 1 : 0)))),
    version_T: Int32Array.from(responses.flatMap((response) => response.map((_, t) => (t === 0 ? 7 : -1)))),
    segmentOffsets_S1: offsetsOf(segments.map(({ length }) => length)),
    segmentEnds_K: Int32Array.from(segments.flatMap((ends, b) => ends.map((end) => at(responseOffsets_S1, b) + end))),
    segmentKinds_K: Uint8Array.from(segments.flatMap((ends) => ends.map((_, k) => k))),
    session_S: Int32Array.from(samples, ({ sample }) => sample),
    output_S: Int32Array.from(samples, ({ sample }) => sample % 2),
    columns: { turns: Float32Array.from(samples, ({ draw, sample }) => draw + sample) },
    tokenColumns: {
      experts: { data: Int32Array.from(responses.flat().flatMap((token) => [token, token + 1])), width: 2 },
      weight: { data: Float32Array.from(responses.flat(), (token) => token / 4), width: 1 },
    },
    stopReason_S: Uint8Array.from(samples, ({ sample }) => 1 + (sample % 2)),
  };
}

/** All divisions: between draws, and between the samples of one draw. */
function cut(draws: readonly number[], first: number, n: number, choose: (below: number) => number): Trajectories[] {
  if (draws.length === 1 && n === 1) return [made(draws, first, n)];
  const whole = choose(3) === 0;
  if (whole) return [made(draws, first, n)];
  if (draws.length > 1) {
    const border = 1 + choose(draws.length - 1);
    return [...cut(draws.slice(0, border), first, n, choose), ...cut(draws.slice(border), first, n, choose)];
  }
  const border = 1 + choose(n - 1);
  return [...cut(draws, first, border, choose), ...cut(draws, first + border, n - border, choose)];
}

describe('trajectories', () => {
  it('of a job’s parts, however divided, join to the same bytes as the whole', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 5 }),
        fc.infiniteStream(fc.nat(1000)),
        (d, n, numbers) => {
          const draws = Array.from({ length: d }, (_, i) => i + 3);
          const choose = (below: number) => Number(numbers.next().value) % below;
          expect(encodeTrajectories(joinTrajectories(cut(draws, 0, n, choose)))).toEqual(
            encodeTrajectories(made(draws, 0, n)),
          );
        },
      ),
    );
  });

  it('join with a sample that has no response, whose draw keeps its prompt', () => {
    const poisoned: Trajectories = {
      ...made([5], 0, 1),
      promptTokens: new Int32Array(0),
      promptOffsets_P1: Int32Array.of(0, 0),
      prompt_S: Int32Array.of(0),
      responseTokens_T: new Int32Array(0),
      responseOffsets_S1: Int32Array.of(0, 0),
      logProbs_T: new Float32Array(0),
      samplingLogProbs_T: new Float32Array(0),
      ...singleTurn(Int32Array.of(0, 0), Int32Array.of(0), 7),
      stopReason_S: Uint8Array.of(3),
    };
    const joined = joinTrajectories([poisoned, made([5], 1, 2)]);
    expect([...joined.promptTokens]).toEqual([5, 6]);
    expect([...joined.stopReason_S]).toEqual([3, 2, 1]);
    expect([...(joined.columns['turns'] ?? [])]).toEqual([Number.NaN, 6, 7]);
    expect(decodeTrajectories(encodeTrajectories(joined), 'x')).toEqual(joined);
  });

  it('of format 1 have one segment of the policy per sample, of a version that they do not say', () => {
    const [now, { tensors }] = [made([5, 6], 0, 3), decodeSafetensors(encodeTrajectories(made([5, 6], 0, 3)), 'x')];
    const before = ['draw', 'row', 'log_probs', 'sampling_log_probs', 'stop_reason'];
    const isOf1 = (name: string) => before.includes(name) || /^(prompt|response)_/.test(name);
    const old = Object.fromEntries([...tensors].filter(([name]) => isOf1(name)));
    const read = decodeTrajectories(encodeSafetensors(old, { weights: 'w', samples_per_draw: '3' }), 'x');
    expect(read).toEqual({ ...now, ...singleTurn(now.responseOffsets_S1, Int32Array.of(0, 1, 2, 0, 1, 2), -1) });
  });

  it('of format 2 have as many samples of each draw, all with its prompt, and nothing of single tokens', () => {
    const [now, { tensors }] = [made([5, 6], 0, 3), decodeSafetensors(encodeTrajectories(made([5, 6], 0, 3)), 'x')];
    const isOf3 = (name: string) => ['draw_offsets', 'prompt'].includes(name) || name.startsWith('token.');
    const old = Object.fromEntries([...tensors].filter(([name]) => !isOf3(name)));
    const metadata = { format: '2', weights: 'w', samples_per_draw: '3' };
    expect(decodeTrajectories(encodeSafetensors(old, metadata), 'x')).toEqual({ ...now, tokenColumns: {} });
    for (const samples_per_draw of ['4', '0', 'x'])
      expect(() => decodeTrajectories(encodeSafetensors(old, { ...metadata, samples_per_draw }), 'x')).toThrow(
        /samples_per_draw: expected a divisor of 6/,
      );
  });

  it('may have a prompt for each sample, groups of any size, and columns of tokens', () => {
    const session: Trajectories = {
      ...made([5, 6], 0, 2),
      drawOffsets_G1: Int32Array.of(0, 1, 4),
      promptTokens: Int32Array.of(1, 2, 3, 4, 5),
      promptOffsets_P1: Int32Array.of(0, 1, 3, 5),
      prompt_S: Int32Array.of(2, 0, 1, 1),
    };
    const read = decodeTrajectories(encodeTrajectories(session), 'x');
    expect(read).toEqual(session);
    expect([0, 1, 2, 3].map((b) => [...promptOf(read, b)])).toEqual([[4, 5], [1], [2, 3], [2, 3]]);
    expect(groupsOf(read)).toEqual([[0], [1, 2, 3]]);
  });

  it.each([
    [
      'a segment that ends before it begins',
      { segmentEnds_K: Int32Array.of(1, 2, 1) },
      /segment_ends: expected at least 2/,
    ],
    [
      'segments that end before their response',
      { segmentEnds_K: Int32Array.of(1, 2, 2) },
      /expected 3 for sample 1, found 2/,
    ],
    ['a column of another length', { columns: { turns: new Float32Array(1) } }, /turns/],
    ['a mask of another length', { mask_T: new Uint8Array(2) }, /mask/],
    ['a prompt that is not there', { prompt_S: Int32Array.of(0, 1) }, /prompt: expected a number below 1, found 1/],
    ['groups of more samples', { drawOffsets_G1: Int32Array.of(0, 3) }, /draw_offsets/],
    ['a column of other tokens', { tokenColumns: { a: { data: new Int32Array(5), width: 2 } } }, /a/],
  ])('are refused with %s', (_, wrong, says) => {
    const whole: Trajectories = {
      ...made([1], 0, 2),
      segmentOffsets_S1: Int32Array.of(0, 1, 3),
      segmentEnds_K: Int32Array.of(1, 2, 3),
      segmentKinds_K: Uint8Array.of(0, 0, 1),
    };
    expect(() => decodeTrajectories(encodeTrajectories(whole), 'x')).not.toThrow();
    expect(() => decodeTrajectories(encodeTrajectories({ ...whole, ...wrong }), 'x')).toThrow(says);
  });
});
