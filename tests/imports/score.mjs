/** The scorer of two fixtures: 1 for the right number at the start of the response. */
export function compute_score(_dataSource, solution, groundTruth) {
  return solution.trim().startsWith(groundTruth) ? 1 : 0;
}
