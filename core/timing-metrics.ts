/**
 * Times and speeds of an iteration from the seconds of its stages (verl: `compute_timing_metrics`,
 * `compute_throughout_metrics`):
 *
 *   timing_per_token_ms/gen             1000 · seconds / response tokens
 *   timing_per_token_ms/{other stage}   1000 · seconds / (prompt and response tokens)
 *   perf/throughput                     tokens / (seconds · devices)
 *
 * Only generation and the stages that read whole sequences have a time per token; saving or scoring has none.
 */

export interface TokenCounts {
  readonly response: number;
  /** Prompts and responses together. */
  readonly all: number;
}

const READ_WHOLE_SEQUENCES = ['ref', 'values', 'adv', 'update_critic', 'update_actor'] as const;

/** `seconds` by stage. Without tokens the time per token is 0, as in verl. */
export function timingPerToken(
  seconds: Readonly<Record<string, number | undefined>>,
  tokens: TokenCounts,
): Record<string, number> {
  const stages = [
    ['gen', tokens.response] as const,
    ...READ_WHOLE_SEQUENCES.map((name) => [name, tokens.all] as const),
  ];
  return Object.fromEntries(
    stages.flatMap(([name, count]) => {
      const spent = seconds[name];
      return spent === undefined ? [] : [[`timing_per_token_ms/${name}`, count === 0 ? 0 : (1000 * spent) / count]];
    }),
  );
}

export interface StepSize {
  /** Prompts and responses together. */
  readonly tokens: number;
  /** Wall time of the step. */
  readonly seconds: number;
  /** 1 where the machines of a run count as one. */
  readonly devices: number;
}

export function throughputMetrics({ tokens, seconds, devices }: StepSize): Record<string, number> {
  return {
    'perf/total_num_tokens': tokens,
    'perf/time_per_step': seconds,
    'perf/throughput': tokens / (seconds * devices),
  };
}
