/** What scores samples in separate processes, and how a sample can end. */
import type { ScoreColumns, ScorerInput } from '../types.ts';

export interface ScorerLimits {
  /** Key `reward.timeout`, in milliseconds. */
  readonly timeoutMs: number;
  /** Key `reward.memory_limit_mb`: memory of a process beyond its size after loading. */
  readonly memoryMb: number;
  /** Key `reward.num_workers`: processes. */
  readonly concurrency: number;
  /** 60 s: starting a process and loading the module. */
  readonly loadTimeoutMs?: number | undefined;
}

export type ScoreOutcome =
  | { readonly ok: true; readonly score: number; readonly columns: ScoreColumns }
  | { readonly ok: false; readonly code: ScoreFailure; readonly reason: string };

/** `no-response`: there was no response to score. */
export type ScoreFailure = 'threw' | 'bad-result' | 'timeout' | 'memory' | 'crashed' | 'no-response';

export interface ScorerHost {
  /** Starts a process and loads the scorer. @throws InvalidInputError when it can't be loaded. */
  ready(): Promise<void>;
  /**
   * One outcome per input, in order. @throws InvalidInputError as `ready`; RetryableError when the host is closed; the
   * signal's reason when it aborts: processes that work for this call are killed at once.
   */
  score(inputs: readonly ScorerInput[], options?: ScoreOptions): Promise<ScoreOutcome[]>;
  /** Ends all processes. */
  close(): Promise<void>;
}

export interface ScoreOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Receives a line that the scorer printed, with the index of the input that it was working on; undefined while it is
   * loading.
   */
  readonly onPrint?: ((line: string, index: number | undefined) => void) | undefined;
}

/** Gives each scorer process an address at which it asks the endpoint of the run. */
export interface Desks {
  open(): Desk;
}

export interface Desk {
  /** `host:port/…`, without a scheme, as verl gives it: `reward_router_address`. */
  readonly address: string;
  /** Is a request under way? While it is, the scorer waits for others, and its time limit stands still. */
  readonly isBusy: boolean;
  /** Called when `isBusy` changes. */
  onChange: () => void;
  /** Ends its requests. */
  close(): void;
}
