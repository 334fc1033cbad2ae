/**
 * verl's metrics of speculative decoding (`compute_spec_decode_metrics`), for its reference cases only: no engine of
 * petrel decodes speculatively. Ratios are taken per sample and then averaged; a sample without drafts or verifications
 * counts as 0.
 */
export interface SpecDecodeCounts {
  readonly drafts: readonly number[] | undefined;
  readonly accepts: readonly number[] | undefined;
  readonly verifies: readonly number[] | undefined;
  /** 0: a padding row, which is left out. */
  readonly keep: readonly number[] | undefined;
}

export function specDecodeMetrics({ drafts, accepts, verifies, keep }: SpecDecodeCounts): Record<string, number> {
  if (drafts === undefined && accepts === undefined && verifies === undefined) return {};
  if (drafts === undefined || accepts === undefined || verifies === undefined)
    throw new Error('expected drafts, accepts and verifies, or none of them');
  const rows = drafts.map((_, i) => i).filter((i) => keep?.[i] !== 0);
  if (rows.length === 0) return {};
  const mean = (of: (i: number) => number) => rows.reduce((sum, i) => sum + of(i), 0) / rows.length;
  const ratio = (part: number | undefined, whole: number | undefined) => Number(part) / Number(whole);
  return {
    'rollout/spec_accept_rate': mean((i) => (drafts[i] === 0 ? 0 : ratio(accepts[i], drafts[i]))),
    'rollout/spec_accept_length': mean((i) => (verifies[i] === 0 ? 0 : 1 + ratio(accepts[i], verifies[i]))),
  };
}
