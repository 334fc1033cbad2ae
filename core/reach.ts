/** How far a worker is from the control machine, by the round trip that it measures to the message server. */

/** On the same machine or beside it, in the same region of a cloud, or in another one. */
export const reaches = ['loopback', 'region', 'regions'] as const;
export type Reach = (typeof reaches)[number];

/** Longest round trip of each, ms. */
const mostMs: readonly (readonly [Reach, number])[] = [
  ['loopback', 1],
  ['region', 10],
];

/** A worker that has not said its round trip is taken for a near one. */
export const reachOf = (roundTripMs = 0): Reach => mostMs.find(([, most]) => roundTripMs <= most)?.[0] ?? 'regions';

/**
 * Round trips, ms, at which workers are told apart when a run decides who takes part in its iterations: those of its
 * own region, those of near regions, and all.
 */
export const reachLimits: readonly number[] = [10, 50];
