/** Memory of a process over time: what it holds changes, and the moment at which it holds most decides. */
import type { DevicePlan } from '../../core/ports/engine-plans.ts';

export type Parts = DevicePlan['parts'];

export const sumOf = (parts: Parts): number => Object.values(parts).reduce((sum, bytes) => sum + bytes, 0);

/** The parts of the moment at which they are most. */
export const fullest = (moments: readonly Parts[]): Parts =>
  moments.reduce((most, parts) => (sumOf(parts) > sumOf(most) ? parts : most), {});

/** Parts of several processes, or of several places of one, by name. */
export function added(...all: readonly Parts[]): Parts {
  const sum: Record<string, number> = {};
  for (const [name, bytes] of all.flatMap((parts) => Object.entries(parts))) sum[name] = (sum[name] ?? 0) + bytes;
  return sum;
}

/** Parts of `count` processes that hold the same. */
export const times = (count: number, parts: Parts): Parts =>
  Object.fromEntries(Object.entries(parts).map(([name, bytes]) => [name, count * bytes]));
