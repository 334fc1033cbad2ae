/**
 * Soft penalty for responses that are nearly too long (Yu et al. 2025, DAPO, arXiv 2503.14476, section 3.4; verl:
 * `reward_manager/dapo.py`, `overlong_buffer_cfg`). Key `reward.overlong_buffer`.
 *
 *   penalty = min(−(L − (limit − buffer)) / buffer · factor, 0)        L: length of the response in tokens
 *
 * So it falls from 0 at `limit − buffer` to −factor at the limit. Odd in verl, and kept: beyond the limit it goes on
 * falling below −factor. The paper gives −1 there.
 */
import { InvalidInputError } from '../errors.ts';
import type { Numbers } from './ragged.ts';

export interface OverlongBuffer {
  /** Longest response, in tokens (verl: `max_resp_len`). */
  readonly limit: number;
  /** Length of the last part of the limit, in which the penalty grows, in tokens (verl: `len`). */
  readonly buffer: number;
  /** Penalty at the limit (verl: `penalty_factor`). */
  readonly factor: number;
}

/** Penalty of each response, 0 or less. @throws InvalidInputError for a buffer that does not fit into the limit. */
export function overlongPenalties(lengths_S: Numbers, overlong: OverlongBuffer): Float64Array {
  checkOverlong(overlong);
  const { limit, buffer, factor } = overlong;
  return Float64Array.from(lengths_S, (length) => Math.min((-(length - (limit - buffer)) / buffer) * factor, 0));
}

/** @throws InvalidInputError, which names the key and what it expects. */
function checkOverlong({ limit, buffer, factor }: OverlongBuffer): void {
  if (!(limit > 0)) throw refused('the longest response', 'more than 0 tokens', limit);
  if (!(buffer > 0))
    throw refused('the length of the buffer', 'more than 0 tokens', buffer, 'set enable: false for no penalty');
  if (!(buffer <= limit)) throw refused('the length of the buffer', `at most the longest response, ${limit}`, buffer);
  if (!(factor >= 0)) throw refused('the penalty factor', '0 or more', factor);
}

function refused(what: string, expected: string, got: number, hint?: string): InvalidInputError {
  return new InvalidInputError(
    `reward.overlong_buffer: ${what} must be ${expected}, got ${got}`,
    hint === undefined ? {} : { hint },
  );
}
