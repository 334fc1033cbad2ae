/**
 * Learning rate as a factor of the base rate, per optimiser step (verl: `get_constant_schedule_with_warmup`,
 * `get_cosine_schedule_with_warmup`, `get_wsd_schedule_with_warmup`; keys `actor.optim.lr_*`).
 * Warm-up is linear and starts at 0: the first step does nothing unless `initLrRatio` is given.
 */
import { InvalidInputError } from '../errors.ts';
import { cos } from '../math/cos.ts';

export const LR_SCHEDULERS = ['constant', 'cosine', 'wsd'] as const;
export type LrScheduler = (typeof LR_SCHEDULERS)[number];

export interface LrSchedule {
  /** Key `lr_scheduler_type`. wsd: warm up, stay stable, decay. */
  readonly type: LrScheduler;
  readonly warmupSteps: number;
  /** Total number of steps, which `constant` does not use. */
  readonly totalSteps: number;
  /** 0; lowest factor at the end of the decay. */
  readonly minLrRatio?: number | undefined;
  /** 0.5 is half a wave: from 1 down to the minimum. The cosine continues: past the end it rises again. */
  readonly numCycles?: number | undefined;
  /** 0; factor before the first warm-up step (cosine). */
  readonly initLrRatio?: number | undefined;
  /** true; false counts the first step as 1 (cosine). */
  readonly zeroIndexedStep?: boolean | undefined;
  /** 0.9; share of the steps after warm-up that keep the full rate (wsd). */
  readonly stableRatio?: number | undefined;
}

/** `lr_warmup_steps`, or when that is 0 or less, this share of all steps rounded down. */
export function resolveWarmupSteps(warmupSteps: number, warmupRatio: number, totalSteps: number): number {
  return warmupSteps > 0 ? warmupSteps : Math.trunc(warmupRatio * totalSteps);
}

/**
 * Factor in force at optimiser step `step`, counted from 0. @throws InvalidInputError when a ratio is outside [0, 1].
 */
export function lrFactor(schedule: LrSchedule, step: number): number {
  switch (schedule.type) {
    case 'constant':
      return step < schedule.warmupSteps ? step / Math.max(1, schedule.warmupSteps) : 1;
    case 'cosine':
      return cosine(schedule, schedule.zeroIndexedStep === false ? step + 1 : step);
    case 'wsd':
      return warmupStableDecay(schedule, step);
    default:
      throw new InvalidInputError(`unknown lr_scheduler_type "${String(schedule.type)}"`, {
        hint: `one of ${LR_SCHEDULERS.join(', ')}`,
      });
  }
}

function cosine(schedule: LrSchedule, step: number): number {
  const lowest = ratio('min_lr_ratio', schedule.minLrRatio);
  const initial = ratio('init_lr_ratio', schedule.initLrRatio);
  const { warmupSteps, totalSteps } = schedule;
  if (step < warmupSteps) return initial + (1 - initial) * (step / Math.max(1, warmupSteps));
  const progress = (step - warmupSteps) / Math.max(1, totalSteps - warmupSteps);
  const wave = cos(Math.PI * (schedule.numCycles ?? 0.5) * 2 * progress);
  return Math.max(lowest, (wave * (1 - lowest)) / 2 + (1 + lowest) / 2);
}

function warmupStableDecay(schedule: LrSchedule, step: number): number {
  const { warmupSteps, totalSteps } = schedule;
  const lowest = schedule.minLrRatio ?? 0;
  const remaining = Math.max(0, totalSteps - warmupSteps);
  const stable = Math.trunc(remaining * (schedule.stableRatio ?? 0.9));
  if (step < warmupSteps) return step / Math.max(1, warmupSteps);
  if (step < warmupSteps + stable) return 1;
  if (step >= totalSteps) return lowest;
  const progress = (step - warmupSteps - stable) / Math.max(1, remaining - stable);
  const wave = 0.5 * (1 + cos(Math.PI * (schedule.numCycles ?? 0.5) * 2 * progress));
  return (1 - lowest) * Math.max(0, wave) + lowest;
}

function ratio(name: string, value = 0): number {
  if (!(value >= 0 && value <= 1)) throw new InvalidInputError(`${name} must lie between 0 and 1, got ${value}`);
  return value;
}
