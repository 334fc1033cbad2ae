/** The messages between a process and the thread of a user's own module. */
import type { OwnModuleKind } from '../../core/recipe/own-modules.ts';
import type { Advantages } from '../../core/rl/advantages/types.ts';
import type { OwnEstimatorNeed, OwnLossNeed } from '../../core/rl/names.ts';
import type { GradientReport, TrialSettings } from '../../core/rl/own/check.ts';
import type { OwnEstimatorCall } from '../../core/rl/own/estimator.ts';
import type { OwnLossCall } from '../../core/rl/own/loss.ts';
import type { Sampling } from '../../core/rl/own/sampler.ts';
import type { OwnSamplerInput } from '../../core/rl/own/types.ts';
import type { PolicyLossResult } from '../../core/rl/policy-loss/types.ts';

export interface OwnModuleThreadData {
  /** What it is loaded as, and the name that it must export unless it has a default. */
  readonly kind: OwnModuleKind;
  readonly fileName: string;
  /** JavaScript: compile.ts. */
  readonly source: Uint8Array;
}

/** What the module says of itself. */
export interface OwnModuleFacts {
  readonly needs: readonly (OwnLossNeed | OwnEstimatorNeed)[];
  readonly deterministic: boolean;
  /** Marks a loss whose gradient goes straight through. */
  readonly straightThrough?: string | true;
}

/** Each call of the thread, with its argument and its answer. */
export interface OwnModuleCalls {
  loss: { readonly argument: OwnLossCall; readonly answer: PolicyLossResult };
  advantages: { readonly argument: OwnEstimatorCall; readonly answer: Advantages };
  checkLoss: { readonly argument: TrialSettings; readonly answer: GradientReport };
  sampling: { readonly argument: OwnSamplerInput; readonly answer: Sampling };
  checkSampler: { readonly argument: OwnSamplerInput; readonly answer: Sampling };
  checkEstimator: { readonly argument: OwnEstimatorCall['config']; readonly answer: null };
}

export interface ToOwnModule<Name extends keyof OwnModuleCalls = keyof OwnModuleCalls> {
  readonly call: Name;
  readonly argument: OwnModuleCalls[Name]['argument'];
}

/** Why a module could not be loaded, or failed. */
export interface OwnModuleFailure {
  readonly reason: string;
  readonly hint?: string;
  /** `my-loss.ts:12:3`: the innermost line of the module. */
  readonly place?: string;
}

export type FromOwnModule =
  | { readonly type: 'ready'; readonly facts: OwnModuleFacts }
  | { readonly type: 'answer'; readonly answer: unknown }
  | { readonly type: 'failed'; readonly failure: OwnModuleFailure };
