/**
 * Scores samples in processes of their own: a scorer that hangs, throws, eats memory or ends its process costs its own
 * sample and nothing else. Each process works on one sample at a time, so it is always known whose fault an end was.
 *
 * A process that ends, or passes the memory limit, may have been spoilt by earlier samples: the sample is tried once more
 * in a fresh one, and fails when that ends too. A call over the time limit fails at once.
 */
import { RetryableError } from '../../core/errors.ts';
import type { ScoreColumns, ScorerInput } from '../types.ts';
import { launchOf, type Launch, type ScorerSpec } from './launch.ts';
import type { Reply } from './protocol.ts';
import { ScorerProcess, type Death, type ProcessLimits } from './scorer-process.ts';

export type { ScorerSpec } from './launch.ts';

export interface ScorerLimits {
  /** Key `reward.timeout`, in milliseconds. */
  readonly timeoutMs: number;
  /** Key `reward.memory_limit_mb`: what a process may take beyond its size after loading. */
  readonly memoryMb: number;
  /** Key `reward.num_workers`: processes. */
  readonly concurrency: number;
  /** 60 s: starting a process and loading the module. */
  readonly loadTimeoutMs?: number | undefined;
}

export type ScoreOutcome =
  | { readonly ok: true; readonly score: number; readonly columns: ScoreColumns }
  | { readonly ok: false; readonly code: ScoreFailure; readonly reason: string };

/** `no-response`: there was nothing to score, and no scorer was asked. */
export type ScoreFailure = 'threw' | 'bad-result' | 'timeout' | 'memory' | 'crashed' | 'no-response';

export interface ScorerHost {
  /** Starts a process and loads the scorer. @throws InvalidInputError when it can't be loaded. */
  ready(): Promise<void>;
  /** One outcome per input, in order. @throws InvalidInputError as `ready`; RetryableError when closed meanwhile. */
  score(inputs: readonly ScorerInput[]): Promise<ScoreOutcome[]>;
  /** Ends all processes. */
  close(): Promise<void>;
}

/** `onOutput` receives what scorers print, line by line or in pieces. */
export function createScorerHost(
  spec: ScorerSpec,
  limits: ScorerLimits,
  onOutput: (text: string) => void = () => undefined,
): ScorerHost {
  return new Pool(launchOf(spec, limits.memoryMb), { loadTimeoutMs: 60_000, ...definedOnly(limits) }, onOutput);
}

interface Job {
  readonly input: ScorerInput;
  readonly resolve: (outcome: ScoreOutcome) => void;
  readonly reject: (error: unknown) => void;
  retried: boolean;
}

type PoolLimits = ProcessLimits & { readonly concurrency: number };

class Pool implements ScorerHost {
  readonly #launch: Launch;
  readonly #limits: PoolLimits;
  readonly #onOutput: (text: string) => void;
  readonly #queue: Job[] = [];
  readonly #idle: ScorerProcess[] = [];
  readonly #all = new Set<ScorerProcess>();
  #busy = 0;
  #closed = false;
  #nextId = 1;

  constructor(launch: Launch, limits: PoolLimits, onOutput: (text: string) => void) {
    this.#launch = launch;
    this.#limits = limits;
    this.#onOutput = onOutput;
  }

  async ready(): Promise<void> {
    if (this.#idle.length > 0 || this.#busy > 0) return;
    this.#idle.push(await this.#start());
  }

  async score(inputs: readonly ScorerInput[]): Promise<ScoreOutcome[]> {
    if (this.#closed) throw closedError();
    const outcomes = inputs.map(
      (input) =>
        new Promise<ScoreOutcome>((resolve, reject) => this.#queue.push({ input, resolve, reject, retried: false })),
    );
    this.#fill();
    return Promise.all(outcomes);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const job of this.#queue.splice(0)) job.reject(closedError());
    await Promise.all([...this.#all].map((scorer) => scorer.kill()));
  }

  /** One loop per process, as many as there is work for and the limit allows. */
  #fill(): void {
    while (this.#busy < this.#limits.concurrency && this.#queue.length > 0) {
      this.#busy++;
      void this.#work().finally(() => this.#busy--);
    }
  }

  async #work(): Promise<void> {
    let scorer: ScorerProcess | undefined;
    for (let job = this.#queue.shift(); job !== undefined; job = this.#queue.shift()) {
      try {
        scorer ??= this.#takeIdle() ?? (await this.#start());
        const outcome = await scorer.score(this.#nextId++, job.input);
        this.#finish(job, outcome);
        if (scorer.dead || spoilt(outcome)) {
          await this.#discard(scorer);
          scorer = undefined;
        }
      } catch (error) {
        // It can't be loaded: the same for everything that waits.
        for (const waiting of [job, ...this.#queue.splice(0)]) waiting.reject(error);
      }
    }
    if (scorer !== undefined) this.#idle.push(scorer);
  }

  /** An idle process may have ended by itself since its last sample. */
  #takeIdle(): ScorerProcess | undefined {
    const scorer = this.#idle.pop();
    if (scorer === undefined || !scorer.dead) return scorer;
    this.#all.delete(scorer);
    return this.#takeIdle();
  }

  #finish(job: Job, outcome: Reply | Death): void {
    if (this.#closed) return job.reject(closedError());
    switch (outcome.type) {
      case 'result':
        return job.resolve({ ok: true, score: outcome.score, columns: outcome.columns });
      case 'failed':
      case 'died':
        if (!job.retried && (outcome.code === 'memory' || outcome.code === 'crashed')) {
          job.retried = true;
          this.#queue.unshift(job);
          return;
        }
        return job.resolve({ ok: false, code: outcome.code, reason: outcome.reason });
      default:
        return job.resolve({ ok: false, code: 'crashed', reason: `unexpected reply ${outcome.type}` });
    }
  }

  async #start(): Promise<ScorerProcess> {
    if (this.#closed) throw closedError();
    const scorer = await ScorerProcess.start(this.#launch, this.#limits, this.#onOutput);
    this.#all.add(scorer);
    if (this.#closed) {
      await this.#discard(scorer);
      throw closedError();
    }
    return scorer;
  }

  async #discard(scorer: ScorerProcess): Promise<void> {
    this.#all.delete(scorer);
    await scorer.kill();
  }
}

/** A Python process that caught its own MemoryError lives on, but isn't to be trusted. */
function spoilt(outcome: Reply | Death): boolean {
  return outcome.type === 'failed' && outcome.code === 'memory';
}

function closedError(): RetryableError {
  return new RetryableError('ScorerHostClosed', 'the scorer processes were ended while samples were waiting');
}

function definedOnly({ loadTimeoutMs, ...limits }: ScorerLimits) {
  return { ...limits, ...(loadTimeoutMs === undefined ? {} : { loadTimeoutMs }) };
}
