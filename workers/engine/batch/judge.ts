/**
 * Numbers for whole responses, from forward passes of bounded size: a reward model's scores, a policy's implicit
 * rewards.
 */
import { forwardOne } from '../../../core/ports/one-lane.ts';
import { at } from '../../../core/at.ts';
import type { ScoringModel } from '../../../core/ports/policy.ts';
import { packWhole } from '../samples/sequence-ends.ts';

/** A response with its prompt. */
export interface Given {
  readonly prompt: Int32Array;
  readonly response: Int32Array;
}

/** A number for each of these responses. */
export type Judge = (responses: readonly Given[]) => Promise<Float64Array>;

/** Responses in passes of bounded length; the numbers in the order of the responses. */
export async function judged(
  judge: Judge,
  all: readonly Given[],
  limit: number,
  progress: (done: number, total: number) => void,
): Promise<Float64Array> {
  const rewards_S = new Float64Array(all.length);
  const lengths = all.map(({ prompt, response }) => prompt.length + response.length);
  const passes = passesOf(lengths, limit);
  for (const [m, members] of passes.entries()) {
    const found = await judge(members.map((s) => at(all, s)));
    members.forEach((s, i) => (rewards_S[s] = at(found, i)));
    progress(m + 1, passes.length);
  }
  return rewards_S;
}

/** Responses in their order, as many at a time as fit; a longer one alone. */
function passesOf(lengths: readonly number[], limit: number): number[][] {
  const passes: number[][] = [];
  let tokens = Number.POSITIVE_INFINITY;
  lengths.forEach((length, s) => {
    if (tokens + length > limit) {
      passes.push([]);
      tokens = 0;
    }
    passes.at(-1)?.push(s);
    tokens += length;
  });
  return passes;
}

/** The scores of a reward model. */
export function byScores(engine: ScoringModel, padToken: number | undefined): Judge {
  return async (responses) => {
    const whole = responses.map(wholeOf);
    const { outputs } = await forwardOne(engine, packWhole(whole, padToken), {
      temperature: 1,
      wants: ['scores'],
      keep: false,
    });
    return Float64Array.from(outputs.scores);
  };
}

export function wholeOf({ prompt, response }: Given): Int32Array {
  const whole = new Int32Array(prompt.length + response.length);
  whole.set(prompt);
  whole.set(response, prompt.length);
  return whole;
}
