/** The messages between a test and its engine in a child process. */
import type { ThrownJson } from '../../core/errors.ts';

/** A method of the child's PolicyEngine or Sampler, or one of the child itself. */
export type Target = 'child' | 'policy' | 'sampler';

export interface ToChild {
  readonly id: number;
  readonly target: Target;
  readonly method: string;
  readonly args: readonly unknown[];
}

export type FromChild =
  | { readonly type: 'tick'; readonly id: number }
  | { readonly type: 'done'; readonly id: number; readonly result: unknown; readonly steps: number }
  | { readonly type: 'failed'; readonly id: number; readonly thrown: ThrownJson };
