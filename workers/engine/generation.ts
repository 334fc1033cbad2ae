/** Continuous batching for one model: samples of many jobs decoded side by side, each job told when its own are done. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PreemptedError } from '../../core/errors.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import type { GenerateRequest, RolloutEngine, SamplingSettings } from '../../core/ports.ts';

/** One finished sample. */
export interface Completion {
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly samplingLogProbs: number[];
  /** 1 stop token or string, 2 length. */
  stopReason: number;
}

export interface GenerationJob {
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
  /** Does the text end here? Called after each token when stop strings are asked for. */
  readonly stopsAt?: (tokens: readonly number[]) => boolean;
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
  readonly #interrupts = new Set<(error: Error) => void>();
  #nextKey = 1;
  #pumping = false;

  constructor(engine: RolloutEngine) {
    this.#engine = engine;
  }

  /** Samples in the order of prompts, samplesPerDraw of each. Rejects with PreemptedError when the weights move. */
  async run(job: GenerationJob): Promise<Completion[]> {
    const completions: Completion[] = [];
    let left = job.prompts.length * job.samplesPerDraw;
    if (left === 0) return completions;
    await new Promise<void>((resolve, reject) => {
      this.#interrupts.add(reject);
      const finished = () => {
        left -= 1;
        if (left > 0) return;
        this.#interrupts.delete(reject);
        resolve();
      };
      job.prompts.forEach((prompt, i) => this.#engine.submit(this.#request(job, prompt, job.draws[i] ?? i, completions, finished)));
      void this.#pump();
    });
    return completions;
  }

  /** The weights are about to change: every sample in flight is dropped and its job told. */
  interrupt(): void {
    this.#engine.reset();
    this.#live.clear();
    for (const reject of this.#interrupts) reject(new PreemptedError('WeightsMoved', 'The weights changed while samples were in flight'));
    this.#interrupts.clear();
  }

  close(): void {
    this.interrupt();
    this.#engine.close();
  }

  #request(job: GenerationJob, prompt: Int32Array, draw: number, completions: Completion[], finished: () => void): GenerateRequest {
    const samples = Array.from({ length: job.samplesPerDraw }, (_, i) => {
      const sample = job.firstSample + i;
      const completion: Completion = { tokens: [], logProbs: [], samplingLogProbs: [], stopReason: 2 };
      completions.push(completion);
      const key = this.#nextKey;
      this.#nextKey = (this.#nextKey % 0x7fffffff) + 1;
      this.#live.set(key, { completion, job, draw, sample, finished });
      return { key, random: { seed: job.seed, draw, sample, turn: 0 } };
    });
    return { prompt, samples, sampling: job.sampling, maxNewTokens: job.maxNewTokens, stopTokens: job.stopTokens };
  }

  /** Decodes until nothing is live, yielding after every step so that messages come in. */
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
      for (const reject of this.#interrupts) reject(error instanceof Error ? error : new Error(String(error)));
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
      live.completion.tokens.push(decoded.tokens[i] ?? 0);
      live.completion.logProbs.push(decoded.logProbs[i] ?? 0);
      live.completion.samplingLogProbs.push(decoded.samplingLogProbs[i] ?? 0);
      perJob.set(live.job, (perJob.get(live.job) ?? 0) + 1);
      faultPoint('sample.token', { draw: live.draw, sample: live.sample, position: live.completion.tokens.length });
      const finish = decoded.finish[i] ?? 0;
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
