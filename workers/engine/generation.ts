/**
 * Continuous batching for one model: samples of many jobs are decoded together, and each job resolves when its own
 * samples are done.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../core/at.ts';
import { PreemptedError } from '../../core/errors.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import type { RunId } from '../../core/ids.ts';
import type { GenerateRequest, GenerateSample, RolloutEngine, SamplingSettings } from '../../core/ports.ts';
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
}

interface Live {
  readonly completion: Completion;
  readonly job: GenerationJob;
  readonly draw: number;
  readonly sample: number;
  readonly finished: () => void;
}

export class Generation {
  readonly #engine: RolloutEngine;
  readonly #live = new Map<number, Live>();
  readonly #interrupts = new Map<GenerationJob, (error: Error) => void>();
  #nextKey = 1;
  #pumping = false;

  constructor(engine: RolloutEngine) {
    this.#engine = engine;
  }

  /** Samples in the order of prompts, samplesPerDraw of each. Rejects with PreemptedError when the weights change. */
  async run(job: GenerationJob): Promise<Completion[]> {
    const completions = job.prompts.flatMap((_, i) =>
      Array.from({ length: job.samplesPerDraw }, (_, s) => newCompletion(job, at(job.draws, i), job.firstSample + s)),
    );
    job.onBegin?.(completions);
    let left = completions.filter(({ stopReason }) => stopReason === 0).length;
    if (left === 0) return completions;
    await new Promise<void>((resolve, reject) => {
      this.#interrupts.set(job, reject);
      const finished = () => {
        left -= 1;
        if (left > 0) return;
        this.#interrupts.delete(job);
        resolve();
      };
      for (const [i, prompt] of job.prompts.entries()) {
        const samples = this.#samples(
          job,
          at(job.draws, i),
          completions.slice(i * job.samplesPerDraw, (i + 1) * job.samplesPerDraw),
          finished,
        );
        if (samples.length > 0) this.#engine.submit(requestOf(job, prompt, samples));
      }
      void this.#pump();
    });
    return completions;
  }

  /** The weights are about to change, or the worker leaves: drops every sample in flight and rejects its job. */
  interrupt(reason = new PreemptedError('WeightsMoved', 'The weights changed while samples were in flight')): void {
    this.#engine.reset();
    this.#live.clear();
    for (const reject of this.#interrupts.values()) reject(reason);
    this.#interrupts.clear();
  }

  /** No process waits for this run's samples any more: frees their slots. */
  abandon(runId: RunId): void {
    for (const [key, { job }] of this.#live) {
      if (job.runId !== runId) continue;
      this.#engine.abort(key);
      this.#live.delete(key);
    }
    for (const [job, reject] of this.#interrupts) {
      if (job.runId !== runId) continue;
      this.#interrupts.delete(job);
      reject(new PreemptedError('Abandoned', `${runId} is paused or has ended`));
    }
  }

  close(): void {
    this.interrupt();
    this.#engine.close();
  }

  /** The samples that are not finished. */
  #samples(
    job: GenerationJob,
    draw: number,
    completions: readonly Completion[],
    finished: () => void,
  ): GenerateSample[] {
    return completions.flatMap((completion, i) => {
      if (completion.stopReason !== 0) return [];
      const sample = job.firstSample + i;
      const key = this.#nextKey;
      this.#nextKey = (this.#nextKey % 0x7fffffff) + 1;
      this.#live.set(key, { completion, job, draw, sample, finished });
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
    try {
      while (this.#live.size > 0) {
        this.#take(this.#engine.step());
        await nextTurn();
      }
    } catch (error) {
      this.#live.clear();
      this.#engine.reset();
      for (const reject of this.#interrupts.values()) reject(error instanceof Error ? error : new Error(String(error)));
      this.#interrupts.clear();
    } finally {
      this.#pumping = false;
    }
  }

  #take(decoded: ReturnType<RolloutEngine['step']>): void {
    const perJob = new Map<GenerationJob, number>();
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
      if (finish !== 0) this.#finish(key, live, finish);
      else if (live.job.stopsAt?.(live.completion.tokens)) {
        this.#engine.abort(key);
        this.#finish(key, live, 1);
      }
    });
    for (const [job, count] of perJob) job.onTokens(count);
  }

  #finish(key: number, live: Live, reason: number): void {
    live.completion.stopReason = reason;
    this.#live.delete(key);
    live.finished();
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
