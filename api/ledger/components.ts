/** The components of a state, by name: core/records/FORMAT.md, "Components". */
import { canonicalText } from './canonical.ts';
import { digestOfBytes } from './objects.ts';
import type { Faults } from './verdict.ts';

type Named<T> = Readonly<Record<string, T>>;

/** The state of each component, and where an update has made it what samplers load of it: a digest by format. */
export type Components = Named<{
  readonly stateDigest: string;
  readonly weightsDigest: string;
  readonly publications?: Named<string>;
}>;

/** Name of the component that a run is about: the policy, or the only one of a run that trains no policy. */
export function mainName(components: Named<unknown>): string {
  const [only = 'actor', ...others] = Object.keys(components);
  return others.length === 0 ? only : 'actor';
}

/** The main component: `actor`, or the only one. The shape of the record was checked, but not that it exists. */
export const actorIn = <T>(components: Named<T>): T | undefined => components[mainName(components)];

export function mapped<T, U>(components: Named<T>, map: (one: T) => U): Named<U> {
  return Object.fromEntries(Object.entries(components).map(([name, one]) => [name, map(one)]));
}

/** Digest of a state: core/records/FORMAT.md, "Digests of a state". */
export function runState(components: Components): string | undefined {
  const [only, ...others] = Object.values(components);
  if (others.length === 0) return only?.stateDigest;
  const states = mapped(components, ({ stateDigest }) => stateDigest);
  return digestOfBytes(canonicalText({ format: 2, components: states }));
}

export function equalNames(faults: Faults, key: string, expected: Named<unknown>, found: Named<unknown>): void {
  const names = (components: Named<unknown>) => Object.keys(components).sort().join(', ');
  faults.equal(key, 'components', names(expected), names(found));
}

export function equalComponents(
  faults: Faults,
  key: string,
  where: string,
  expected: Components,
  found: Components,
): void {
  equalNames(faults, key, expected, found);
  for (const [name, { stateDigest, weightsDigest }] of Object.entries(expected)) {
    faults.equal(key, `the state of ${name} ${where}:`, stateDigest, found[name]?.stateDigest);
    faults.equal(key, `the weights of ${name} ${where}:`, weightsDigest, found[name]?.weightsDigest);
  }
}

/** Optimiser steps of a batch: those of the components that are trained on it. */
export const stepsOfBatch = (components: Named<{ readonly learningRates: readonly number[] }>): number =>
  Object.values(components).reduce((most, { learningRates }) => Math.max(most, learningRates.length), 0);
