/** What a worker process does: it trains, samples or scores. One process may hold several roles. */
export const roles = ['trainer', 'rollout', 'reward'] as const;
export type Role = (typeof roles)[number];

/** Every set of these roles, the empty one first. */
export function roleSets(of: readonly Role[]): Role[][] {
  return of.reduce<Role[][]>((sets, role) => [...sets, ...sets.map((set) => [...set, role])], [[]]);
}
