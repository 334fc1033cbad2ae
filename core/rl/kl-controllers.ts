/**
 * The coefficient β of the KL penalty in the reward, from batch to batch (verl: `FixedKLController`,
 * `AdaptiveKLController`; keys `algorithm.kl_ctrl.*`; adaptive: Ziegler et al. 2019, arXiv 1909.08593).
 *
 *   fixed      β stays
 *   adaptive   β ← β · (1 + clip(KL / target − 1, ±0.2) · samples / horizon)
 *
 * The state is β itself, a plain number that a record can hold. As in verl, more than 5 · horizon samples in one batch
 * can make β negative, and a negative β stays negative.
 */
import { InvalidInputError } from '../errors.ts';
import { KL_CONTROLLER_NAMES, type KlControllerName } from './names.ts';

const LARGEST_ERROR = 0.2;

/** verl's keys under `algorithm.kl_ctrl`. */
export interface KlControl {
  readonly type: KlControllerName;
  /** 0.001; the coefficient, with adaptive the first one. */
  readonly klCoef: number;
  /** 0.1; the KL that adaptive aims at. */
  readonly targetKl?: number | undefined;
  /** 10000; in samples: adaptive moves by at most a fifth in so many. */
  readonly horizon?: number | undefined;
}

/**
 * The coefficient after a batch of so many samples with this mean KL.
 *
 * @throws InvalidInputError for an unknown type, or a horizon that isn't positive.
 */
export function nextKlCoef(control: KlControl, coefficient: number, currentKl: number, samples: number): number {
  switch (control.type) {
    case 'fixed':
      return coefficient;
    case 'adaptive': {
      const { targetKl = 0.1, horizon = 10_000 } = control;
      if (!(horizon > 0)) throw new InvalidInputError(`kl_ctrl.horizon must be greater than 0, got ${horizon}`);
      const error = Math.min(Math.max(currentKl / targetKl - 1, -LARGEST_ERROR), LARGEST_ERROR);
      return coefficient * (1 + (error * samples) / horizon);
    }
    default:
      throw new InvalidInputError(`unknown kl_ctrl.type "${String(control.type)}"`, {
        hint: `one of ${KL_CONTROLLER_NAMES.join(', ')}`,
      });
  }
}
