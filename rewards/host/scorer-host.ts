/**
 * Scores samples in separate processes. A scorer that hangs, throws, uses too much memory or ends its process affects
 * only its own sample. Each process works on one sample at a time, so the cause of an end is always known.
 *
 * A process that ends or exceeds the memory limit may have been damaged by earlier samples. So the sample is tried once
 * more in a new process, and fails if that ends too. A call over the time limit fails at once.
 */
import { RetryableError } from '../../core/errors.ts';
import type { ScorerInput } from '../types.ts';
import type { ScoreFailure, ScoreOptions, ScoreOutcome, ScorerHost, ScorerLimits } from './host-types.ts';
import { launchOf, type Launch, type ScorerSpec } from './launch.ts';
import { prepareScorer } from './prepare-scorer.ts';
import { RoutedHost } from './routed-host.ts';
import type { Reply, ScoreCall } from './protocol.ts';
import { ScorerProcess, type Death, type OnPrint, type ProcessLimits } from './scorer-process.ts';

export type { ScorerSpec } from './launch.ts';
export type { ScoreFailure, ScoreOptions, ScoreOutcome, ScorerHost, ScorerLimits } from './host-types.ts';

/**
 * @throws InvalidInputError when there is no such scorer or module; UnfitError when this machine lacks what the scorer
 *   needs: the packages of a built-in scorer in Python, or a sandbox.
 */
export function createScorerHost(spec: ScorerSpec, limits: ScorerLimits): ScorerHost {
  const pool = (one: ScorerSpec) =>
    new Pool(launchOf(one, limits), { loadTimeoutMs: 60_000, ...definedOnly(limits) }, callsOf(one));
  return spec.type === 'builtin' && (spec.name ?? null) === null
    ? new RoutedHost(
        (name) => pool({ ...spec, name }),
        (name) => prepareScorer(name, spec.settings ?? {}, limits),
      )
    : pool(spec);
}

/** The calls that score these samples. */
type Calls = (inputs: readonly ScorerInput[]) => ScoreCall[];

function callsOf(spec: ScorerSpec): Calls {
  return spec.type === 'module' && spec.lists === true
    ? (inputs) => (inputs.length === 0 ? [] : [{ type: 'scoreAll', inputs }])
    : (inputs) => inputs.map((input) => ({ type: 'score', input }));
}

interface Job {
  readonly call: ScoreCall;
  /** Index of its first sample. */
  readonly index: number;
  readonly options: ScoreOptions;
  /** One outcome per sample of the call. */
  readonly resolve: (outcomes: ScoreOutcome[]) => void;
  readonly reject: (error: unknown) => void;
  /** The process that works on it now. */
  scorer?: ScorerProcess;
  retried: boolean;
}

type PoolLimits = ProcessLimits & { readonly concurrency: number };

class Pool implements ScorerHost {
  readonly #launch: Launch;
  readonly #limits: PoolLimits;
  readonly #calls: Calls;
  readonly #queue: Job[] = [];
  readonly #idle: ScorerProcess[] = [];
  readonly #all = new Set<ScorerProcess>();
  readonly #closing = new AbortController();
  #busy = 0;
  #closed = false;
  #nextId = 1;

  constructor(launch: Launch, limits: PoolLimits, calls: Calls) {
    this.#launch = launch;
    this.#limits = limits;
    this.#calls = calls;
  }

  async ready(): Promise<void> {
    if (this.#idle.length > 0 || this.#busy > 0) return;
    this.#idle.push(await this.#start(() => undefined));
  }

  async score(inputs: readonly ScorerInput[], options: ScoreOptions = {}): Promise<ScoreOutcome[]> {
    if (this.#closed) throw closedError();
    const { signal } = options;
    signal?.throwIfAborted();
    const jobs: Job[] = [];
    const outcomes = this.#calls(inputs).map(
      (call, index) =>
        new Promise<ScoreOutcome[]>((resolve, reject) =>
          jobs.push({ call, index, options, resolve, reject, retried: false }),
        ),
    );
    const giveUp = () => this.#giveUp(jobs);
    signal?.addEventListener('abort', giveUp);
    this.#queue.push(...jobs);
    this.#fill();
    const all = Promise.all(outcomes).finally(() => signal?.removeEventListener('abort', giveUp));
    return (await all).flat();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.abort(closedError());
    for (const job of this.#queue.splice(0)) job.reject(closedError());
    await Promise.all([...this.#all].map((scorer) => scorer.kill()));
  }

  /** One loop per process, as many as the work and the limit allow. */
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
        scorer ??= this.#takeIdle() ?? (await this.#start(printer(job, undefined), job.options.signal));
        if (givenUp(job)) continue;
        const outcome = await this.#ask(scorer, job);
        this.#finish(job, outcome);
        if (scorer.dead || spoilt(outcome)) {
          await this.#discard(scorer);
          scorer = undefined;
        }
      } catch (error) {
        // Loading failed, so all waiting samples fail with the same error.
        if (!givenUp(job)) for (const waiting of [job, ...this.#queue.splice(0)]) waiting.reject(error);
      }
    }
    if (scorer !== undefined) this.#idle.push(scorer);
  }

  async #ask(scorer: ScorerProcess, job: Job): Promise<Reply | Death> {
    job.scorer = scorer;
    try {
      return await scorer.score(this.#nextId++, job.call, printer(job, job.index));
    } finally {
      delete job.scorer;
    }
  }

  /**
   * Drops samples whose call was aborted. A process that is still loading for one of them is killed by its own signal.
   */
  #giveUp(jobs: readonly Job[]): void {
    const given = new Set(jobs);
    this.#queue.splice(0, Infinity, ...this.#queue.filter((job) => !given.has(job)));
    for (const job of jobs) {
      void job.scorer?.kill();
      job.reject(job.options.signal?.reason);
    }
  }

  /** An idle process may have ended since its last sample. */
  #takeIdle(): ScorerProcess | undefined {
    const scorer = this.#idle.pop();
    if (scorer === undefined || !scorer.dead) return scorer;
    this.#all.delete(scorer);
    return this.#takeIdle();
  }

  #finish(job: Job, outcome: Reply | Death): void {
    if (this.#closed) return job.reject(closedError());
    if (givenUp(job)) return;
    const samples = job.call.type === 'score' ? 1 : job.call.inputs.length;
    const failed = (code: ScoreFailure, reason: string) =>
      job.resolve(Array.from({ length: samples }, () => ({ ok: false, code, reason })));
    switch (outcome.type) {
      case 'result':
        return job.resolve([{ ok: true, score: outcome.score, columns: outcome.columns }]);
      case 'results':
        if (outcome.results.length !== samples) return failed('bad-result', 'it answered for another list');
        return job.resolve(outcome.results.map(({ score, columns }) => ({ ok: true, score, columns })));
      case 'failed':
      case 'died':
        if (!job.retried && (outcome.code === 'memory' || outcome.code === 'crashed')) {
          job.retried = true;
          this.#queue.unshift(job);
          return;
        }
        return failed(outcome.code, outcome.reason);
      default:
        return failed('crashed', `unexpected reply ${outcome.type}`);
    }
  }

  async #start(onPrint: OnPrint, signal?: AbortSignal): Promise<ScorerProcess> {
    if (this.#closed) throw closedError();
    const givenUp = AbortSignal.any([this.#closing.signal, ...(signal === undefined ? [] : [signal])]);
    const scorer = await ScorerProcess.start(this.#launch, this.#limits, onPrint, givenUp);
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

function givenUp(job: Job): boolean {
  return job.options.signal?.aborted === true;
}

function printer({ options }: Job, index: number | undefined): OnPrint {
  return (line) => options.onPrint?.(line, index);
}

/** A Python process that caught its own MemoryError still runs, but must not be trusted. */
function spoilt(outcome: Reply | Death): boolean {
  return outcome.type === 'failed' && outcome.code === 'memory';
}

function closedError(): RetryableError {
  return new RetryableError('ScorerHostClosed', 'the scorer processes were ended while samples were waiting');
}

function definedOnly({ loadTimeoutMs, ...limits }: ScorerLimits) {
  return { ...limits, ...(loadTimeoutMs === undefined ? {} : { loadTimeoutMs }) };
}
