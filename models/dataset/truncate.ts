/** What to do with tokens over a limit: verl's `data.truncation`. */
export type Truncation = 'error' | 'left' | 'right' | 'middle';

/** Keeps `limit` tokens: the last ones (left), the first ones (right), or the first half and the last (middle). */
export function truncate(tokens: Int32Array, limit: number, side: Exclude<Truncation, 'error'>): Int32Array {
  const { length } = tokens;
  if (length <= limit) return tokens;
  if (side === 'left') return tokens.slice(length - limit);
  if (side === 'right') return tokens.slice(0, limit);
  const head = Math.floor(limit / 2);
  const kept = new Int32Array(limit);
  kept.set(tokens.subarray(0, head));
  kept.set(tokens.subarray(length - (limit - head)), head);
  return kept;
}

/** A prompt and a response under one limit: cut as one sequence, then parted where the response begins. */
export function truncatePair(
  prompt: Int32Array,
  response: Int32Array,
  limit: number,
  side: Exclude<Truncation, 'error'>,
): [Int32Array, Int32Array] {
  const whole = new Int32Array(prompt.length + response.length);
  whole.set(prompt);
  whole.set(response, prompt.length);
  const isResponse = new Int32Array(whole.length).fill(1, prompt.length);
  const kept = truncate(whole, limit, side);
  const border = truncate(isResponse, limit, side).indexOf(1);
  const at = border < 0 ? kept.length : border;
  return [kept.slice(0, at), kept.slice(at)];
}
