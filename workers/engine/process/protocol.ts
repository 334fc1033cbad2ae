/** The messages between a worker's main thread and its engine thread. */
import type { ThrownJson } from '../../../core/errors.ts';
import type { EngineFacts } from '../../../core/wire/engine-facts.ts';
import type { JobMessage } from '../../../core/wire/messages.ts';
import type { NewWeights, WeightsHolders } from '../../../core/wire/weights.ts';
import type { EndedSample } from '../job/context.ts';

export type ToEngine =
  /**
   * `journal`: entries of other workers for the job. `cancelled`: shared memory, not 0 once the result is no longer
   * needed.
   */
  | {
      readonly type: 'job';
      readonly id: number;
      readonly message: JobMessage;
      readonly journal: readonly string[];
      /** The holders to ask for the run's weights. */
      readonly weights?: WeightsHolders;
      readonly cancelled: Int32Array<SharedArrayBuffer>;
    }
  /**
   * The result of this job is no longer needed. An engine of this process reads `cancelled` instead, while it works.
   */
  | { readonly type: 'cancel'; readonly id: number }
  /** Entries of the journal were lost. */
  | { readonly type: 'journal-lost' }
  /** New weights of a run were committed, and these processes have them. */
  | { readonly type: 'new-weights'; readonly committed: NewWeights; readonly holders: readonly string[] }
  /** The run has paused or ended: its samples in flight are dropped. */
  | { readonly type: 'abandon'; readonly runId: string }
  /** This worker leaves: samples in flight are written to the journal and dropped. */
  | { readonly type: 'requeue'; readonly because: string }
  /** Complete the checkpoints that are being written, and save the state in memory if there is time. */
  | { readonly type: 'save-last'; readonly inTime: boolean }
  | { readonly type: 'release'; readonly runId: string; readonly components?: readonly string[] }
  | { readonly type: 'close' };

export type FromEngine =
  /** `serves`: URL at which others get the weights that it has. */
  | { readonly type: 'ready'; readonly facts: readonly EngineFacts[]; readonly serves?: string }
  | {
      readonly type: 'done';
      readonly id: number;
      readonly output: Readonly<Record<string, unknown>>;
      readonly seconds: number;
      readonly counts: Readonly<Record<string, number>>;
    }
  | { readonly type: 'failed'; readonly id: number; readonly thrown: ThrownJson }
  | {
      readonly type: 'progress';
      readonly id: number;
      readonly done: number;
      readonly total: number;
      readonly note: string;
    }
  | { readonly type: 'say'; readonly id: number; readonly text: string }
  | { readonly type: 'ended'; readonly id: number; readonly samples: readonly EndedSample[] }
  /** Partial samples of a job. */
  | { readonly type: 'journal'; readonly id: number; readonly text: string; readonly tokens: number }
  /** Duration of writing a checkpoint. */
  | { readonly type: 'saved'; readonly ms: number }
  /** The answer to `save-last`; without a run there was nothing to save. */
  | { readonly type: 'saved-last'; readonly runId?: string; readonly text: string };

export interface EngineThreadData {
  readonly threads: number;
  readonly cache: string;
  /** Address of this machine at which others may ask for weights; absent: none. */
  readonly servesOn?: string;
  /** One Int32 that rises with every piece of committed work. */
  readonly ticks: SharedArrayBuffer;
  /** Name of this process in the journal. */
  readonly incarnation: string;
  /** How often samples in flight are written to the journal. */
  readonly journalMs: number;
}
