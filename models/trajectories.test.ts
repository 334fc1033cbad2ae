import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeTrajectories, encodeTrajectories, joinTrajectories, offsetsOf } from './trajectories.ts';
import type { Trajectories } from './trajectories.ts';

/** Sample s of draw d has a response of (d + s) % 4 tokens, all of them d * 100 + s. */
function made(draws: readonly number[], first: number, n: number): Trajectories {
  const samples = draws.flatMap((draw) => Array.from({ length: n }, (_, i) => ({ draw, sample: first + i })));
  const responses = samples.map(({ draw, sample }) => new Array<number>((draw + sample) % 4).fill(draw * 100 + sample));
  const prompts = draws.map((draw) => [draw, draw + 1]);
  return {
    weightsDigest: 'w',
    samplesPerDraw: n,
    draw_S: Int32Array.from(samples, ({ draw }) => draw),
    row_S: Int32Array.from(samples, ({ draw }) => draw * 7),
    promptTokens: Int32Array.from(prompts.flat()),
    promptOffsets_G1: offsetsOf(prompts.map((prompt) => prompt.length)),
    responseTokens_T: Int32Array.from(responses.flat()),
    responseOffsets_S1: offsetsOf(responses.map((response) => response.length)),
    logProbs_T: Float32Array.from(responses.flat(), (token) => -token),
    samplingLogProbs_T: Float32Array.from(responses.flat(), (token) => -token / 2),
    stopReason_S: Uint8Array.from(samples, ({ sample }) => 1 + (sample % 2)),
  };
}

/** All divisions: between draws, and between the samples of one draw. */
function cut(draws: readonly number[], first: number, n: number, choose: (below: number) => number): Trajectories[] {
  if (draws.length === 1 && n === 1) return [made(draws, first, n)];
  const whole = choose(3) === 0;
  if (whole) return [made(draws, first, n)];
  if (draws.length > 1) {
    const at = 1 + choose(draws.length - 1);
    return [...cut(draws.slice(0, at), first, n, choose), ...cut(draws.slice(at), first, n, choose)];
  }
  const at = 1 + choose(n - 1);
  return [...cut(draws, first, at, choose), ...cut(draws, first + at, n - at, choose)];
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
          expect(encodeTrajectories(joinTrajectories(cut(draws, 0, n, choose), n))).toEqual(
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
      promptOffsets_G1: Int32Array.of(0, 0),
      responseTokens_T: new Int32Array(0),
      responseOffsets_S1: Int32Array.of(0, 0),
      logProbs_T: new Float32Array(0),
      samplingLogProbs_T: new Float32Array(0),
      stopReason_S: Uint8Array.of(3),
    };
    const joined = joinTrajectories([poisoned, made([5], 1, 2)], 3);
    expect([...joined.promptTokens]).toEqual([5, 6]);
    expect([...joined.stopReason_S]).toEqual([3, 2, 1]);
    expect(decodeTrajectories(encodeTrajectories(joined), 'x')).toEqual(joined);
  });
});
