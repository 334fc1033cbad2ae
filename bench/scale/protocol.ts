/** Messages between the bench and its processes that play workers. Times are of the machine's clock, in ms. */
import type { Role } from '../../core/roles.ts';

/** The argument of a player, as JSON. */
export interface PlayerSettings {
  readonly prefix: string;
  readonly workers: number;
  readonly roles: readonly Role[];
  readonly store: string;
  readonly recordingFile: string;
  readonly seed: number;
}

export type FromPlayer =
  | { readonly type: 'ready' }
  /** `freeSince`: since when the worker had a slot for it. */
  | {
      readonly type: 'started';
      readonly job: string;
      readonly worker: string;
      readonly at: number;
      readonly freeSince: number;
    }
  /** Messages that the connections of its workers have got so far. */
  | { readonly type: 'received'; readonly messages: number };

export type ToPlayer = { readonly type: 'count' } | { readonly type: 'leave' };
