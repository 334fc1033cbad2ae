/**
 * Generates samples with one sampler, each by itself: whoever wants samples asks for one at a time, and all of them are
 * decoded together.
 */
import { at } from '../../../core/at.ts';
import { PreemptedError, RetryableError } from '../../../core/errors.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import type { RunId } from '../../../core/ids.ts';
import type { DecodedTokens, GenerateRequest, Sampler } from '../../../core/ports/sampler.ts';
import type { SamplingSettings } from '../../../core/sampling-settings.ts';
import { columnsAt } from '../../../core/token-columns.ts';
import type { TokenColumns } from '../../../core/token-columns.ts';
import type { TokenRun } from './lineage.ts';

/** One sample, finished or growing. */
export interface Completion extends TokenRun {
  /** 0 growing, 1 stop token or string, 2 length. */
  stopReason: number;
  /** Other numbers of each token that its sampler gives, and from which token on: none of a prefix is known. */
  columns?: { readonly from: number; readonly parts: TokenColumns[] };
}

/** How samples are generated. Samples with the same object and the same prompt share the prompt's prefill. */
export interface GenerationSettings {
  readonly runId: RunId;
  readonly sampling: SamplingSettings;
  readonly maxNewTokens: number;
  readonly stopTokens: Int32Array;
  readonly seed: readonly [number, number];
  /** Does the text end here? Called after each token when there are stop strings. */
  readonly stopsAt?: (tokens: readonly number[]) => boolean;
}

/** Which sample this is: with the seed it decides the random bits of a sampler that counts. */
export interface SampleNumber {
  readonly draw: number;
  /** Number among the responses to its draw. */
  readonly sample: number;
  readonly turn: number;
}

export interface SampleRequest extends SampleNumber {
  readonly prompt: Int32Array;
  readonly settings: GenerationSettings;
  /** Tokens from which it continues: another worker has decoded them. */
  readonly prefix?: TokenRun | undefined;
}

/** Who wants to know of samples while they grow, once for all that have grown together. */
export interface Watcher {
  readonly onTokens?: (count: number) => void;
  readonly onEnded?: (ended: readonly Completion[]) => void;
}

/** A sample that has been asked for. */
export interface Sampling {
  readonly completion: Completion;
  /** Resolves when it has ended. Rejects with PreemptedError when the weights change. */
  readonly ended: Promise<void>;
}

interface Live {
  readonly key: number;
  readonly completion: Completion;
  readonly request: SampleRequest;
  readonly watcher: Watcher;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class Generation {
  readonly #sampler: Promise<Sampler>;
  readonly #live = new Map<number, Live>();
  /** Samples that were asked for in this turn of the event loop: they begin together. */
  #starting: Live[] = [];
  #nextKey = 1;

  constructor(sampler: Promise<Sampler>) {
    this.#sampler = sampler;
    sampler.catch(() => {}); // each sample that needs it fails with this error
  }

  /** Begins a sample. The tokens from which it continues may already complete it. */
  sample(request: SampleRequest, watcher: Watcher = {}): Sampling {
    const completion = newCompletion(request);
    if (completion.stopReason !== 0) return { completion, ended: Promise.resolve() };
    const ended = new Promise<void>((resolve, reject) => {
      const key = this.#nextKey;
      this.#nextKey = (this.#nextKey % 0x7fffffff) + 1;
      const live = { key, completion, request, watcher, resolve, reject };
      this.#live.set(key, live);
      if (this.#starting.length === 0) queueMicrotask(() => void this.#start(this.#starting.splice(0)));
      this.#starting.push(live);
    });
    ended.catch(() => {}); // who waits for it sees the error
    return { completion, ended };
  }

  /**
   * The weights are about to change, or the worker leaves: rejects every sample at once, and resolves when they are
   * dropped.
   */
  async interrupt(
    reason = new PreemptedError('WeightsMoved', 'The weights changed while samples were in flight'),
  ): Promise<void> {
    this.#reject(this.#live.values(), reason);
    await this.#tell((sampler) => sampler.pause());
  }

  /** No process waits for this run's samples any more: frees their slots. */
  async abandon(runId: RunId): Promise<void> {
    const live = [...this.#live.values()].filter(({ request }) => request.settings.runId === runId);
    await this.#drop(live, new PreemptedError('Abandoned', `${runId} is paused or has ended`));
  }

  /** Ends the samples of one caller. */
  async leave(watcher: Watcher, reason: Error): Promise<void> {
    await this.#drop(
      [...this.#live.values()].filter((live) => live.watcher === watcher),
      reason,
    );
  }

  async close(): Promise<void> {
    await this.interrupt();
    await this.#tell((sampler) => sampler.close());
  }

  async #drop(live: readonly Live[], reason: Error): Promise<void> {
    this.#reject(live, reason);
    await this.#tell(async (sampler) => {
      for (const { key } of live) await sampler.abort(key);
    });
  }

  #reject(live: Iterable<Live>, reason: Error): void {
    for (const one of [...live]) if (this.#live.delete(one.key)) one.reject(reason);
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

  /** Reads the tokens of these samples until each has ended. */
  async #start(asked: readonly Live[]): Promise<void> {
    try {
      const sampler = await this.#sampler;
      const live = asked.filter(({ key }) => this.#live.has(key)); // the others were dropped meanwhile
      if (live.length === 0) return;
      await sampler.resume();
      for await (const decoded of sampler.generate(requestsOf(live)))
        for (const key of this.#take(decoded)) await sampler.abort(key);
      this.#reject(live, new Error('the sampler ended before its sample'));
    } catch (error) {
      this.#reject(asked, error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Adds the tokens to their samples. Returns the keys of samples that end at a stop string. */
  #take(decoded: DecodedTokens): number[] {
    const stopped: number[] = [];
    const counts = new Map<Watcher, number>();
    const finished = new Map<Watcher, Live[]>();
    decoded.keys.forEach((key, i) => {
      const live = this.#live.get(key);
      if (live === undefined) return;
      const { completion, request, watcher } = live;
      const token = at(decoded.tokens, i);
      const logProb = at(decoded.logProbs, i);
      completion.tokens.push(token);
      completion.logProbs.push(logProb);
      completion.samplingLogProbs.push(
        decoded.samplingLogProbs === undefined ? logProb : at(decoded.samplingLogProbs, i),
      );
      if (decoded.columns !== undefined) {
        completion.columns ??= { from: completion.tokens.length - 1, parts: [] };
        completion.columns.parts.push(columnsAt(decoded.columns, Int32Array.of(i)));
      }
      counts.set(watcher, (counts.get(watcher) ?? 0) + 1);
      const { draw, sample, settings } = request;
      faultPoint('sample.token', { runId: settings.runId, draw, sample, position: completion.tokens.length });
      const finish = at(decoded.finish, i);
      const isStopped = finish === 0 && settings.stopsAt?.(completion.tokens) === true;
      if (finish === 0 && !isStopped) return;
      if (isStopped) stopped.push(key);
      completion.stopReason = isStopped ? 1 : finish;
      this.#live.delete(key);
      finished.set(watcher, [...(finished.get(watcher) ?? []), live]);
    });
    for (const [watcher, count] of counts) watcher.onTokens?.(count);
    for (const [watcher, ended] of finished) {
      watcher.onEnded?.(ended.map(({ completion }) => completion));
      for (const { resolve } of ended) resolve();
    }
    return stopped;
  }
}

/** Samples of one prompt in one request, so that the prompt is prefilled once. */
function requestsOf(live: readonly Live[]): GenerateRequest[] {
  const bySettings = new Map<GenerationSettings, Map<Int32Array, Live[]>>();
  for (const one of live) {
    const { settings, prompt } = one.request;
    const byPrompt = bySettings.get(settings) ?? new Map<Int32Array, Live[]>();
    bySettings.set(settings, byPrompt);
    const known = byPrompt.get(prompt);
    if (known === undefined) byPrompt.set(prompt, [one]);
    else known.push(one);
  }
  return [...bySettings].flatMap(([{ sampling, maxNewTokens, stopTokens, seed }, byPrompt]) =>
    [...byPrompt].map(([prompt, samples]) => ({
      prompt,
      samples: samples.map(({ key, request: { draw, sample, turn }, completion: { tokens } }) => ({
        key,
        random: { seed, draw, sample, turn },
        ...(tokens.length > 0 && { prefix: Int32Array.from(tokens) }),
      })),
      sampling,
      maxNewTokens,
      stopTokens,
    })),
  );
}

function newCompletion({ prefix, settings }: SampleRequest): Completion {
  if (prefix === undefined) return { tokens: [], logProbs: [], samplingLogProbs: [], stopReason: 0 };
  return { ...prefix, stopReason: stopReasonOf(settings, prefix.tokens) };
}

/** The checks that a decoding step makes, in the same order. */
function stopReasonOf({ stopTokens, maxNewTokens, stopsAt }: GenerationSettings, tokens: readonly number[]): number {
  if (stopTokens.includes(tokens.at(-1) ?? -1)) return 1;
  if (tokens.length >= maxNewTokens) return 2;
  return tokens.length > 0 && stopsAt?.(tokens) ? 1 : 0;
}
