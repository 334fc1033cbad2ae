/** What a worker process does: it trains, samples or scores. One process may hold several roles. */
export const roles = ['trainer', 'rollout', 'reward'] as const;
export type Role = (typeof roles)[number];
