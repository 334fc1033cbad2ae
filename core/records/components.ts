/**
 * The components of a run's state: models that are trained, saved and published each by itself, by name. `actor` is the
 * policy; others are `critic`, `rewardModel`. A record holds one entry for each.
 */
export type Components<T> = Readonly<Record<string, T>>;

/** The component of this name. Throws when there is none. */
export function componentOf<T>(components: Components<T>, name: string): T {
  const component = components[name];
  if (component === undefined)
    throw new Error(`expected the component ${name}, found ${Object.keys(components).join(', ') || 'none'}`);
  return component;
}

/** The components of these names. Throws when one is missing. */
export const someOf = <T>(components: Components<T>, names: readonly string[]): Components<T> =>
  Object.fromEntries(names.map((name) => [name, componentOf(components, name)]));

/** Name of the component that a run is about: the policy, or the only one of a run that trains no policy. */
export function mainName(components: Components<unknown>): string {
  const [only = 'actor', ...others] = Object.keys(components);
  return others.length === 0 ? only : 'actor';
}

/** The main component: `actor`, or the only one. Throws when there is none. */
export const actorOf = <T>(components: Components<T>): T => componentOf(components, mainName(components));

/** The shards of all components of a checkpoint. */
export function shardsOf<S>({
  components,
}: {
  readonly components: Components<{ readonly shards: readonly S[] }>;
}): S[] {
  return Object.values(components).flatMap(({ shards }) => [...shards]);
}

/** Optimiser steps of a batch: every component that is trained on it takes as many. */
export const stepsOfBatch = (components: Components<{ readonly learningRates: readonly number[] }>): number =>
  Math.max(0, ...Object.values(components).map(({ learningRates }) => learningRates.length));

/** The same for every component. */
export function mapComponents<T, U>(components: Components<T>, map: (one: T, name: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(components).map(([name, one]) => [name, map(one, name)]));
}
