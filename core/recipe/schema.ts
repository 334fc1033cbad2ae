/** The whole recipe. verl's names and defaults, without its `actor_rollout_ref.` wrapper. */
import { z } from 'zod';
import { actorSection } from './actor.ts';
import { runNamePattern } from '../ids.ts';
import { RUN_KINDS, runKinds } from '../run-kinds.ts';
import { algorithmSection } from './algorithm.ts';
import { criticSection } from './critic.ts';
import { dataSection } from './data.ts';
import { deterministicKey } from './deterministic.ts';
import { distillationSection } from './distillation.ts';
import { fleetSection } from './fleet.ts';
import { key } from './key.ts';
import { modelSection } from './model.ts';
import { refSection } from './ref.ts';
import { rewardSection } from './reward.ts';
import { rolloutSection } from './rollout.ts';
import { storeKey } from './store.ts';
import { trainerSection } from './trainer.ts';

const runName = z.string().regex(runNamePattern, 'expected 1 to 40 of a-z, 0-9 and "-", "-" not at the ends');

export const recipeSchema = z.strictObject({
  name: key(runName, 'run', {
    doc: 'Name of the run; ids are made from it. Left out: the name of the recipe’s folder or file.',
    change: 'fixed',
    verl: 'trainer.experiment_name',
  }),
  kind: key(z.enum(RUN_KINDS), 'rl', {
    doc: `${RUN_KINDS.map((kind) => `${kind}: ${runKinds[kind].doc}`).join('; ')}.`,
    change: 'fixed',
  }),
  seed: key(z.int().nonnegative(), 42, { doc: 'Seed of everything random in the run.', change: 'fixed' }),
  model: modelSection,
  data: dataSection,
  actor: actorSection,
  ref: refSection,
  rollout: rolloutSection,
  critic: criticSection,
  algorithm: algorithmSection,
  reward: rewardSection,
  distillation: distillationSection,
  trainer: trainerSection,
  store: storeKey,
  fleet: fleetSection,
  deterministic: deterministicKey,
});

type DeepReadonly<T> = T extends readonly [infer A, infer B]
  ? readonly [A, B]
  : T extends (infer U)[]
    ? readonly DeepReadonly<U>[]
    : T extends object
      ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
      : T;

/** A resolved recipe: every key has a value, and nothing refers to other files. */
export type Recipe = DeepReadonly<z.output<typeof recipeSchema>>;

/** A recipe as the user writes it: keys with defaults may be omitted. */
export type RecipeInput = DeepReadonly<z.input<typeof recipeSchema>>;
