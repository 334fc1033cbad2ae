import type { Recipe } from './schema.ts';

/** Names of the components that a recipe trains, as in its records; the policy is first. */
export const trainedComponents = ({ critic }: Recipe): readonly ['actor', ...string[]] =>
  critic.enable === true ? ['actor', 'critic'] : ['actor'];
