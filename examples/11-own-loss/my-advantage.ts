/** The score of a response minus the median of its group: one lucky response does not lower the others. */
import type { OwnAdvantageEstimator } from 'petrel';

export const estimator: OwnAdvantageEstimator = {
  needs: ['groupsOfTwo'],
  deterministic: true,
  compute({ scores_S, groups_S }) {
    const scores = new Map<number, number[]>();
    groups_S.forEach((group, s) => scores.set(group, [...(scores.get(group) ?? []), scores_S[s]]));
    const medians = new Map([...scores].map(([group, values]) => [group, median(values)]));
    return { advantages_S: scores_S.map((score, s) => score - (medians.get(groups_S[s]) ?? 0)) };
  },
};

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
