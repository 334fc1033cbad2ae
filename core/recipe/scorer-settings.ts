import type { Recipe } from './schema.ts';

/**
 * What the scorer of a recipe gets as its settings: `reward.reward_kwargs`, and the service for programs if there is
 * one.
 */
export function scorerSettings({ reward }: Pick<Recipe, 'reward'>): Readonly<Record<string, unknown>> {
  const { url, max_concurrent: most, memory_limit_mb } = reward.sandbox_fusion;
  if (url === null || reward.custom_reward_function.path !== null) return reward.reward_kwargs;
  const max_concurrent = Math.max(1, Math.floor(most / reward.num_workers));
  return { ...reward.reward_kwargs, sandbox_fusion: { url, max_concurrent, memory_limit_mb } };
}
