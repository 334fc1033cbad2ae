/** A curriculum: sums up to 40 first, and larger ones when the policy answers most of the batch rightly. */
import type { OwnSampler } from 'petrel';

interface State {
  /** The right answer of each row. */
  readonly answers: readonly number[];
  readonly limit: number;
}

export const sampler: OwnSampler = {
  deterministic: true,
  compute({ facts, results, state }) {
    if (facts !== undefined) {
      const answers = facts.map(({ groundTruth }) => Number(groundTruth));
      return weighed({ answers, limit: 40 });
    }
    const { answers, limit } = state as State;
    const scores = results.flatMap((result) => result.scores).filter((score) => score !== null);
    const mean = scores.reduce((sum, score) => sum + score, 0) / Math.max(1, scores.length);
    return weighed({ answers, limit: mean > 0.6 ? limit + 20 : limit });
  },
};

/** Every row up to the limit can come; larger sums are passed over. */
function weighed(state: State) {
  return { weights: state.answers.map((answer) => (answer <= state.limit ? 1 : 0)), state };
}
