/** The messages between a test and its engine in a child process. */
import type { ThrownJson } from '../../core/errors.ts';
import type { StatePiece } from '../../core/ports/policy.ts';
import type { WeightsFormat } from '../../core/parameters.ts';

/** A method of the child's PolicyEngine or Sampler, or one of the child itself. */
export type Target = 'child' | 'policy' | 'sampler';

/** What a load asks a sink for: a piece of a state, or bytes of a publication. */
export type Piece = StatePiece | Pick<StatePiece, 'start' | 'end'>;

/** A source without its function. */
export type SourceFacts =
  | { readonly type: 'pieces'; readonly steps: number }
  | { readonly type: 'published'; readonly format: WeightsFormat };

export interface ToChild {
  readonly id: number;
  readonly target: Target;
  readonly method: string;
  readonly args: readonly unknown[];
  /** The child says when it is in the middle of the call, and never goes on. */
  readonly hold: boolean;
}

export type FromChild =
  | { readonly type: 'tick' | 'halfway'; readonly id: number }
  | { readonly type: 'done'; readonly id: number; readonly result: unknown; readonly steps: number }
  | { readonly type: 'failed'; readonly id: number; readonly thrown: ThrownJson };
