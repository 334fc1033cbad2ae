/** What the modules of the user's own ask of the recipe that names them. It is known once they are loaded. */
import type { OwnModuleInput } from '../records/schema.ts';
import { isModulePath } from '../module-path.ts';
import { readsValues } from './components.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

/** The keys that may name a module, by the name of its entry in a run's inputs. */
export const ownModuleKeys = {
  loss: 'actor.policy_loss.loss_mode',
  estimator: 'algorithm.adv_estimator',
  sampler: 'data.sampler',
} as const;
export type OwnModuleKind = keyof typeof ownModuleKeys;
export const ownModuleKinds = Object.keys(ownModuleKeys) as readonly OwnModuleKind[];

/** The path of the recipe's module of this kind; undefined when it names a built-in, and where nothing reads it. */
export function ownModulePath({ kind: of, actor, algorithm, data }: Recipe, kind: OwnModuleKind): string | undefined {
  const values = { loss: actor.policy_loss.loss_mode, estimator: algorithm.adv_estimator, sampler: data.sampler };
  const value = values[kind];
  return of === 'rl' && value !== null && isModulePath(value) ? value : undefined;
}

/** Everything that the recipe does not give. */
export function ownModuleIssues(
  recipe: Recipe,
  modules: Partial<Readonly<Record<OwnModuleKind, OwnModuleInput | undefined>>>,
): RecipeIssue[] {
  return ownModuleKinds.flatMap((kind) => {
    const module = modules[kind];
    if (module === undefined || ownModulePath(recipe, kind) === undefined) return [];
    const name = `./${module.fileName}`;
    const issue = (message: string, hint: string) => ({ path: ownModuleKeys[kind], message, hint });
    const needs = NEEDS.filter((need) => need.of === kind && module.needs.includes(need.need) && !need.isGiven(recipe));
    const lacking = needs.map(({ what, hint }) => issue(`${name} needs ${what}`, hint));
    if (module.deterministic || !needsDeterministic(recipe, kind)) return lacking;
    const message = `${name} is not declared deterministic, and the recipe has deterministic: ${recipe.deterministic}`;
    const hint = `if equal inputs always give equal results, add deterministic: true to the exported ${kind}`;
    return [...lacking, issue(message, hint)];
  });
}

/** Advantages and weights of rows are recorded with the batch. A loss is computed again when a batch is replayed. */
const needsDeterministic = ({ deterministic }: Recipe, kind: OwnModuleKind): boolean =>
  kind === 'loss' ? deterministic !== false : deterministic === true;

interface Need {
  readonly of: OwnModuleKind;
  readonly need: string;
  readonly what: string;
  readonly isGiven: (recipe: Recipe) => boolean;
  readonly hint: string;
}

const NEEDS: readonly Need[] = [
  {
    of: 'loss',
    need: 'refLogProbs',
    what: 'log-probs of the reference policy (refLogProbs)',
    isGiven: ({ actor }) => actor.use_kl_loss,
    hint: 'set actor.use_kl_loss: true; with actor.kl_loss_coef: 0 it adds nothing to the loss',
  },
  {
    of: 'loss',
    need: 'values',
    what: 'the values of a critic (values)',
    isGiven: readsValues,
    hint: 'choose an estimator that reads values: algorithm.adv_estimator: gae',
  },
  {
    of: 'estimator',
    need: 'values',
    what: 'the values of a critic (values)',
    isGiven: readsValues,
    hint: 'set critic.enable: true',
  },
  {
    of: 'estimator',
    need: 'groupsOfTwo',
    what: 'two or more responses to a prompt (groupsOfTwo)',
    isGiven: ({ rollout }) => rollout.n >= 2,
    hint: 'rollout.n=8 is usual',
  },
];
