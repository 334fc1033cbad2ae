/**
 * The learning rate of an optimiser step: a second implementation, written from docs/look-up/recipe-keys.md,
 * "actor.optim".
 */
import { cos } from '../../core/math/cos.ts';
import { actorIn, mainName, stepsOfBatch } from './components.ts';
import type { Objects } from './objects.ts';
import type { Batch, LedgerRecipe, RateSettings, Revision } from './records.ts';

/** The number of iterations that a recipe asks for. */
export function wantedIterations({ recipe, inputs }: Pick<Revision, 'recipe' | 'inputs'>): number {
  const { total_training_steps: steps, total_epochs: epochs } = recipe.trainer;
  return steps ?? Math.max(1, Math.floor((inputs.trainRows * epochs) / promptsOf(recipe)));
}

/**
 * Prompts that an iteration takes from the data. Oversampling and the estimator spo choose those of a batch among more.
 */
function promptsOf({ kind, algorithm, data }: LedgerRecipe): number {
  if (kind === 'rl' && data.oversample_factor !== undefined && data.oversample_factor > 1)
    return Math.round(data.train_batch_size * data.oversample_factor);
  const isChoice = algorithm.adv_estimator === 'spo' || (data.sampler ?? null) !== null;
  const chooses = kind === 'rl' && isChoice && algorithm.filter_groups?.enable !== true;
  return chooses ? (data.gen_batch_size ?? data.train_batch_size) : data.train_batch_size;
}

/**
 * Every learning rate of a batch must be the rate of its optimiser step, except for rounding. The policy has none in
 * iterations that train only the critic.
 */
export function checkRates({ faults }: Objects, batch: Batch, revision: Revision, key: string): void {
  const warmsUp = batch.iteration < (revision.recipe.trainer.critic_warmup ?? 0);
  const steps = warmsUp ? 0 : stepsOfBatch(batch.components);
  faults.equal(key, 'learning rates of the policy', steps, actorIn(batch.components)?.learningRates.length ?? 0);
  actorIn(batch.components)?.learningRates.forEach((found, s) => {
    const step = (batch.before.optimizerSteps[mainName(batch.components)] ?? 0) + s;
    const expected = rateOf(revision, step);
    if (!(Math.abs(found - expected) <= 1e-9 * revision.recipe.actor.optim.lr))
      faults.add(key, `learning rate ${expected} of optimiser step ${step}`, String(found));
  });
}

/** The rate of an optimiser step; steps count from 0. */
export function rateOf(revision: Pick<Revision, 'recipe' | 'inputs'>, step: number): number {
  const { optim } = revision.recipe.actor;
  const length = optim.total_training_steps ?? wantedIterations(revision) * stepsOfIteration(revision.recipe);
  return optim.lr * share(optim, step, length);
}

function stepsOfIteration({ kind, data, actor }: LedgerRecipe): number {
  return kind === 'rl' ? Math.ceil(data.train_batch_size / actor.ppo_mini_batch_size) * actor.ppo_epochs : 1;
}

/** Share of the peak rate at a step: it rises linearly during the warm-up, then follows the schedule. */
function share(optim: RateSettings, at: number, length: number): number {
  const { lr_scheduler_type: type, lr_warmup_steps: steps, min_lr_ratio: least, num_cycles: cycles } = optim;
  const warmup = steps > 0 ? steps : Math.floor(optim.lr_warmup_steps_ratio * length);
  const cosine = type === 'cosine';
  const step = cosine && !optim.zero_indexed_step ? at + 1 : at;
  const first = cosine ? (optim.init_lr_ratio ?? 0) : 0;
  if (step < warmup) return first + ((1 - first) * step) / warmup;
  if (type === 'constant') return 1;
  const wave = (begin: number) => (1 + cos(2 * Math.PI * cycles * ((step - begin) / Math.max(1, length - begin)))) / 2;
  if (cosine) return Math.max(least, least + (1 - least) * wave(warmup));
  const decay = warmup + Math.floor(Math.max(0, length - warmup) * optim.stable_ratio);
  if (step < decay) return 1;
  return step >= length ? least : least + (1 - least) * Math.max(0, wave(decay));
}
