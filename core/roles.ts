/** What a worker process does: it trains, samples or scores. One process may hold several roles. */
export const roles = ['trainer', 'rollout', 'reward'] as const;
export type Role = (typeof roles)[number];

/** Every set of these roles, the empty one first. */
export function roleSets(of: readonly Role[]): Role[][] {
  const sets: Role[][] = [[]];
  for (const role of of) for (const set of [...sets]) sets.push([...set, role]);
  return sets;
}
