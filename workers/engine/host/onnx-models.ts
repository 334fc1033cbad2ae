/** The reward model in ONNX that an engine's thread has open: one, for the run that it trains. */
import { readdir } from 'node:fs/promises';
import { PauseError } from '../../../core/errors.ts';
import type { Digest } from '../../../core/ids.ts';
import { OnnxClassifier, onnxBytes, OnnxModelError } from '../../../infra/onnx/classifier.ts';
import { padTokenOf } from '../../../models/config.ts';
import { readConfigJson } from '../../../models/folder.ts';
import type { MemoryPlan } from '../engines/memory-plan.ts';

interface Open {
  readonly key: string;
  readonly classifier: OnnxClassifier;
}

export interface ToScore {
  readonly model: Digest;
  readonly folder: string;
  /** One thread, and each response by itself: then the scores depend on the processor and on nothing else. */
  readonly alone: boolean;
  /** Tokens of a batch, padding included. */
  readonly tokens: number;
  readonly progress: (done: number, total: number) => void;
}

export class OnnxModels {
  readonly #memory: MemoryPlan;
  readonly #threads: number;
  readonly #tick: () => void;
  #open: Open | undefined;

  constructor(memory: MemoryPlan, threads: number, tick: () => void) {
    this.#memory = memory;
    this.#threads = threads;
    this.#tick = tick;
  }

  /**
   * Scores of whole responses. Throws PauseError `RewardModelFailed` for what only a person can change, UnfitError
   * `TooLittleMemory` when the model does not fit beside the others.
   */
  async score(sequences: readonly Int32Array[], options: ToScore): Promise<Float32Array> {
    const { alone, tokens, progress } = options;
    try {
      const classifier = await this.#opened(options);
      return await classifier.score(sequences, { tokens, sequences: alone ? 1 : Number.POSITIVE_INFINITY }, progress);
    } catch (error) {
      if (!(error instanceof OnnxModelError)) throw error;
      const { message, where, hint } = error;
      throw new PauseError('RewardModelFailed', message, {
        ...(where !== undefined && { where }),
        ...(hint !== undefined && { hint }),
        cause: error,
      });
    }
  }

  async close(): Promise<void> {
    const before = this.#open;
    this.#open = undefined;
    if (before === undefined) return;
    await before.classifier.close();
    this.#memory.release(before.classifier);
  }

  async #opened({ model, folder, alone }: ToScore): Promise<OnnxClassifier> {
    const key = `${model} ${alone}`;
    if (this.#open?.key === key && this.#open.classifier.isAlive) return this.#open.classifier;
    await this.close();
    const padToken = padTokenOf(await readConfigJson(folder));
    const bytes = await onnxBytes(folder, await readdir(folder));
    const classifier = await this.#memory.open(bytes, () =>
      OnnxClassifier.open(folder, { threads: alone ? 1 : this.#threads, padToken, onAlive: this.#tick }),
    );
    this.#open = { key, classifier };
    return classifier;
  }
}
