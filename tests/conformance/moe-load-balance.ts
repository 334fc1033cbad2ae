/**
 * How evenly the experts of a mixture are loaded (verl: `compute_rollout_moe_load_balance_metrics`), for its reference
 * cases only until a sampler reports the experts that it used. Per layer, over the response tokens that entered the
 * model:
 *
 *   deviation_e = E · (share of the assignments that went to expert e) − 1
 *   max_vio, min_vio, avg_vio = largest, smallest and mean absolute deviation
 *
 * The last response token of a row was sampled but never fed back, so it has no experts. Nothing is reported when no
 * token is left, an expert is outside 0 … E − 1, or a row has fewer positions than the response.
 */
export interface ExpertUse {
  /** Experts of each row, position, layer, and place among the top k. Positions are the last ones of the row. */
  readonly experts: readonly (readonly (readonly (readonly number[])[])[])[];
  readonly mask: readonly (readonly number[])[];
  readonly count: number;
}

export function moeLoadBalance({ experts, mask, count }: ExpertUse): Record<string, number> {
  const tokens = mask.flatMap((row, s) => {
    const last = row.lastIndexOf(1);
    const positions = experts[s]?.slice(-row.length) ?? [];
    if (positions.length < row.length) return [undefined];
    return positions.filter((_, t) => row[t] === 1 && t !== last);
  });
  const known = tokens.filter((token) => token !== undefined);
  const isOutside = (expert: number) => expert < 0 || expert >= count;
  if (known.length === 0 || known.length < tokens.length || known.flat(2).some(isOutside)) return {};
  const layers = (known[0] ?? []).map((_, layer) =>
    violations(
      known.flatMap((token) => token[layer] ?? []),
      count,
    ),
  );
  return {
    ...Object.fromEntries(
      layers.flatMap((layer, i) =>
        Object.entries(layer).map(([name, value]) => [`rollout/moe/${name}/layer_${i}`, value]),
      ),
    ),
    ...Object.fromEntries(
      names.flatMap((name) => {
        const values = layers.map((layer) => layer[name]);
        return [
          [`rollout/moe/${name}/max`, Math.max(...values)],
          [`rollout/moe/${name}/avg`, values.reduce((sum, value) => sum + value, 0) / values.length],
        ];
      }),
    ),
  };
}

const names = ['max_vio', 'min_vio', 'avg_vio'] as const;

function violations(assigned: readonly number[], count: number): Record<(typeof names)[number], number> {
  const deviations = Array.from({ length: count }, (_, expert) => {
    const share = assigned.filter((one) => one === expert).length / assigned.length;
    return share * count - 1;
  });
  return {
    max_vio: Math.max(...deviations),
    min_vio: Math.min(...deviations),
    avg_vio: deviations.reduce((sum, value) => sum + Math.abs(value), 0) / count,
  };
}
