/** What the main thread of a worker and its engine thread say to each other. */
import type { ErrorJson, PetrelErrorKind } from '../../core/errors.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import type { EngineFacts } from './profile.ts';

export type ToEngine =
  | { readonly type: 'job'; readonly id: number; readonly message: JobMessage }
  | { readonly type: 'release'; readonly runId: string }
  | { readonly type: 'close' };

export type FromEngine =
  | { readonly type: 'ready'; readonly facts: EngineFacts }
  | { readonly type: 'done'; readonly id: number; readonly output: Readonly<Record<string, unknown>>; readonly seconds: number }
  | { readonly type: 'failed'; readonly id: number; readonly kind: PetrelErrorKind | 'unknown'; readonly error: ErrorJson; readonly stack: string }
  | { readonly type: 'progress'; readonly id: number; readonly done: number; readonly total: number; readonly note: string }
  | { readonly type: 'say'; readonly id: number; readonly text: string };

export interface EngineThreadData {
  readonly threads: number;
  readonly cache: string;
  /** One Int32: rises with every piece of committed work. */
  readonly ticks: SharedArrayBuffer;
}
