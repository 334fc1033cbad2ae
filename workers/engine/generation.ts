/**
 * Continuous batching for one model: samples of many jobs are decoded together, and each job resolves when its own
 * samples are done.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../core/at.ts';
import { PreemptedError, RetryableError } from '../../core/errors.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import type { RunId } from '../../core/ids.ts';
import type {
  DecodedTokens,
  GenerateRequest,
  GenerateSample,
  Sampler,
  SamplingSettings,
} from '../../core/ports/sampler.ts';
import type { TokenRun } from './lineage.ts';

/** One sample, finished or growing. */
export interface Completion extends TokenRun {
  /** 0 growing, 1 stop token or string, 2 length. */
  stopReason: number;
}

export interface GenerationJob {
  readonly runId: RunId;
  readonly prompts: readonly Int32Array[];
  /** Draw number of each prompt. */
  readonly draws: readonly number[];
  readonly samplesPerDraw: number;
  /** Number of each draw's first sample. */
  readonly firstSample: number;
  readonly sampling: SamplingSettings;
  readonly maxNewTokens: number;
  readonly stopTokens: Int32Array;
  readonly seed: readonly [number, number];
  /** Does the text end here? Called after each token when there are stop strings. */
  readonly stopsAt?: (tokens: readonly number[]) => boolean;
  /** Tokens from which a sample continues: another worker has decoded them. */
  readonly prefixOf?: (draw: number, sample: number) => TokenRun | undefined;
  /** Receives the samples before the first step, in the order of `run`'s answer; they grow from now on. */
  readonly onBegin?: (completions: readonly Completion[]) => void;
  readonly onTokens: (count: number) => void;
  /** Samples have ended, by their places among the completions, which are in the order of `run`'s answer. */
  readonly onEnded?: (places: readonly number[], completions: readonly Completion[]) => void;
}

/** Collects samples of a job that have ended in one step, and tells of them. */
interface Finished {
  readonly ended: number[];
  /** Resolves the job when none is left. */
  readonly tell: () => void;
}

interface Live {
  readonly completion: Completion;
  /** Place among the completions of its job. */
  readonly place: number;
  readonly job: GenerationJob;
  readonly draw: number;
  readonly sample: number;
  readonly finished: Finished;
}

export class Generation {
  readonly #sampler: Promise<Sampler>;
  readonly #live = new Map<number, Live>();
  readonly #interrupts = new Map<GenerationJob, (error: Error) => void>();
  #nextKey = 1;
  #pumping = false;

  constructor(sampler: Promise<Sampler>) {
    this.#sampler = sampler;
    sampler.catch(() => {}); // each job that needs it fails with this error
  }

  /** Samples in the order of prompts, samplesPerDraw of each. Rejects with PreemptedError when the weights change. */
  async run(job: GenerationJob): Promise<Completion[]> {
    const completions = job.prompts.flatMap((_, i) =>
      Array.from({ length: job.samplesPerDraw }, (_, s) => newCompletion(job, at(job.draws, i), job.firstSample + s)),
    );
    job.onBegin?.(completions);
    const ended = completions.flatMap(({ stopReason }, place) => (stopReason === 0 ? [] : [place]));
    if (ended.length > 0) job.onEnded?.(ended, completions);
    let left = completions.length - ended.length;
    if (left === 0) return completions;
    await new Promise<void>((resolve, reject) => {
      this.#interrupts.set(job, reject);
      const finished: Finished = {
        ended: [],
        tell: () => {
          const places = finished.ended.splice(0);
          job.onEnded?.(places, completions);
          left -= places.length;
          if (left > 0) return;
          this.#interrupts.delete(job);
          resolve();
        },
      };
      const requests = job.prompts.flatMap((prompt, i) => {
        const samples = this.#samples(job, i, completions, finished);
        return samples.length === 0 ? [] : requestOf(job, prompt, samples);
      });
      this.#submit(job, requests).then(
        () => this.#pump(),
        (error: Error) => this.#drop(job, error),
      );
    });
    return completions;
  }

  /**
   * The weights are about to change, or the worker leaves: rejects every job at once, and resolves when their samples
   * are dropped.
   */
  async interrupt(
    reason = new PreemptedError('WeightsMoved', 'The weights changed while samples were in flight'),
  ): Promise<void> {
    this.#rejectAll(reason);
    await this.#tell((sampler) => sampler.reset());
  }

  /** No process waits for this run's samples any more: frees their slots. */
  async abandon(runId: RunId): Promise<void> {
    const jobs = [...this.#interrupts.keys()].filter((job) => job.runId === runId);
    const dropped = jobs.map((job) =>
      this.#drop(job, new PreemptedError('Abandoned', `${runId} is paused or has ended`)),
    );
    await Promise.all(dropped);
  }

  async close(): Promise<void> {
    await this.interrupt();
    await this.#tell((sampler) => sampler.close());
  }

  async #submit(job: GenerationJob, requests: readonly GenerateRequest[]): Promise<void> {
    const sampler = await this.#sampler;
    for (const request of requests) if (this.#interrupts.has(job)) await sampler.submit(request);
  }

  /** Rejects the job at once, and resolves when its samples are dropped. */
  async #drop(job: GenerationJob, reason: Error): Promise<void> {
    this.#interrupts.get(job)?.(reason);
    this.#interrupts.delete(job);
    const keys = [...this.#live].filter(([, live]) => live.job === job).map(([key]) => key);
    keys.forEach((key) => this.#live.delete(key));
    await this.#tell(async (sampler) => {
      for (const key of keys) await sampler.abort(key);
    });
  }

  /** Calls the sampler. One that was never created, or has ended, has nothing to drop or to close. */
  async #tell(call: (sampler: Sampler) => Promise<void>): Promise<void> {
    const sampler = await this.#sampler.catch(() => undefined);
    try {
      if (sampler !== undefined) await call(sampler);
    } catch (error) {
      if (!(error instanceof RetryableError) || error.code !== 'EngineExited') throw error;
    }
  }

  #rejectAll(reason: Error): void {
    this.#live.clear();
    for (const reject of this.#interrupts.values()) reject(reason);
    this.#interrupts.clear();
  }

  /** The samples that are not finished. */
  #samples(
    job: GenerationJob,
    prompt: number,
    completions: readonly Completion[],
    finished: Finished,
  ): GenerateSample[] {
    const draw = at(job.draws, prompt);
    const first = prompt * job.samplesPerDraw;
    return completions.slice(first, first + job.samplesPerDraw).flatMap((completion, i) => {
      if (completion.stopReason !== 0) return [];
      const sample = job.firstSample + i;
      const key = this.#nextKey;
      this.#nextKey = (this.#nextKey % 0x7fffffff) + 1;
      this.#live.set(key, { completion, place: first + i, job, draw, sample, finished });
      return [
        {
          key,
          random: { seed: job.seed, draw, sample, turn: 0 },
          ...(completion.tokens.length > 0 && { prefix: Int32Array.from(completion.tokens) }),
        },
      ];
    });
  }

  /** Decodes until no sample is live. Yields after every step so that messages are handled. */
  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    const sampler = await this.#sampler;
    while (this.#live.size > 0) {
      try {
        const stopped = this.#take(await sampler.step());
        for (const key of stopped) await sampler.abort(key);
      } catch (error) {
        this.#rejectAll(error instanceof Error ? error : new Error(String(error)));
        await this.#tell((one) => one.reset());
      }
      await nextTurn();
    }
    this.#pumping = false;
  }

  /** Adds the tokens to their samples. Returns the keys of samples that end at a stop string. */
  #take(decoded: DecodedTokens): number[] {
    const stopped: number[] = [];
    const perJob = new Map<GenerationJob, number>();
    const finished = new Set<Finished>();
    decoded.keys.forEach((key, i) => {
      const live = this.#live.get(key);
      if (live === undefined) return;
      live.completion.tokens.push(at(decoded.tokens, i));
      live.completion.logProbs.push(at(decoded.logProbs, i));
      live.completion.samplingLogProbs.push(at(decoded.samplingLogProbs, i));
      perJob.set(live.job, (perJob.get(live.job) ?? 0) + 1);
      faultPoint('sample.token', {
        runId: live.job.runId,
        draw: live.draw,
        sample: live.sample,
        position: live.completion.tokens.length,
      });
      const finish = at(decoded.finish, i);
      if (finish !== 0) finished.add(this.#finish(key, live, finish));
      else if (live.job.stopsAt?.(live.completion.tokens)) {
        stopped.push(key);
        finished.add(this.#finish(key, live, 1));
      }
    });
    for (const [job, count] of perJob) job.onTokens(count);
    for (const { tell } of finished) tell();
    return stopped;
  }

  #finish(key: number, { completion, place, finished }: Live, reason: number): Finished {
    completion.stopReason = reason;
    this.#live.delete(key);
    finished.ended.push(place);
    return finished;
  }
}

function requestOf(
  { sampling, maxNewTokens, stopTokens }: GenerationJob,
  prompt: Int32Array,
  samples: readonly GenerateSample[],
): GenerateRequest {
  return { prompt, samples, sampling, maxNewTokens, stopTokens };
}

/** A sample before its first step. The tokens from which it continues may already complete it. */
function newCompletion(job: GenerationJob, draw: number, sample: number): Completion {
  const prefix = job.prefixOf?.(draw, sample);
  if (prefix === undefined) return { tokens: [], logProbs: [], samplingLogProbs: [], stopReason: 0 };
  return { ...prefix, stopReason: stopReasonOf(job, prefix.tokens) };
}

/** The checks that a decoding step makes, in the same order. */
function stopReasonOf({ stopTokens, maxNewTokens, stopsAt }: GenerationJob, tokens: readonly number[]): number {
  if (stopTokens.includes(tokens.at(-1) ?? -1)) return 1;
  if (tokens.length >= maxNewTokens) return 2;
  return tokens.length > 0 && stopsAt?.(tokens) ? 1 : 0;
}
