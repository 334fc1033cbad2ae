/**
 * A sequence classifier with one score, as an ONNX file: docs/decisions/0016. It computes in a thread of its own, so
 * the caller's event loop stays free.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { at } from '../../core/at.ts';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import { AskedThread } from '../asked-thread.ts';
import { batchesByLength } from './batches.ts';
import type { BatchLimits } from './batches.ts';
import type { ClassifierThreadData, FromClassifier, PaddedBatch } from './protocol.ts';
import { scoresOutput, wrongScores } from './shapes.ts';

/** File of the graph. Large weights lie in a second file, whose name the graph holds. */
export const onnxFile = 'model.onnx';

/** What the file is made with. */
const exportHint = 'write it with petrel model onnx, from a sequence classifier with num_labels 1';

const lessMemoryHint = 'where it lacks memory: a smaller actor.ppo_max_token_len_per_gpu, or fewer processes';

/** Numbers of one head that a batch's attention has at most: 64 MiB in each. */
const mostPairs = 1 << 24;

export interface ClassifierOptions {
  readonly threads: number;
  /** The token with which the model was trained to be padded; undefined: it is given sequences of equal length only. */
  readonly padToken: number | undefined;
  /** Called each second while the thread computes. */
  readonly onAlive?: () => void;
  /** Time limit of loading the file, and of each batch. Default: ten minutes. */
  readonly limitMs?: number;
}

export type ScoreLimits = Pick<BatchLimits, 'tokens' | 'sequences'>;

/** The file cannot be used. */
export class OnnxModelError extends InvalidInputError {}

/** Threads run built code, also for callers that run from source. */
const program = import.meta.url.endsWith('.ts')
  ? '../../dist/infra/onnx/classifier-thread.js'
  : './classifier-thread.js';

export class OnnxClassifier {
  readonly #path: string;
  readonly #options: ClassifierOptions;
  readonly #thread: AskedThread<FromClassifier>;
  #output = '';

  private constructor(folder: string, options: ClassifierOptions) {
    this.#path = join(folder, onnxFile);
    this.#options = options;
    const data: ClassifierThreadData = { path: this.#path, threads: options.threads };
    const thread = new Worker(fileURLToPath(new URL(program, import.meta.url)), {
      workerData: data,
      execArgv: [], // the options of the caller's own `node` are not for this program
    });
    this.#thread = new AskedThread(thread, (end) =>
      'error' in end ? end.error : new Error(`the thread of ${this.#path} ended with code ${end.code}`),
    );
  }

  /**
   * Loads the file and checks its inputs and outputs. Throws OnnxModelError for a file that ONNX Runtime does not read,
   * or that gives something else than one score for each sequence. The caller closes it.
   */
  static async open(folder: string, options: ClassifierOptions): Promise<OnnxClassifier> {
    const classifier = new OnnxClassifier(folder, options);
    try {
      const message = await classifier.#answer(() => {});
      if (message.type === 'failed') throw classifier.#wrong(message.reason);
      if (message.type === 'ready') classifier.#output = classifier.#outputOf(message.facts);
      return classifier;
    } catch (error) {
      await classifier.close();
      throw error;
    }
  }

  /** False once its thread has ended. */
  get isAlive(): boolean {
    return this.#thread.isAlive;
  }

  /**
   * The score of each sequence, in their order. Throws OnnxModelError when the model fails, or gives a number that is
   * not finite. `progress` may throw to end the work between two batches.
   */
  async score(
    sequences: readonly Int32Array[],
    limits: ScoreLimits,
    progress: (done: number, total: number) => void = () => {},
  ): Promise<Float32Array> {
    const scores_S = new Float32Array(sequences.length);
    const lengths = sequences.map(({ length }) => length);
    const { padToken } = this.#options;
    const batches = batchesByLength(lengths, { ...limits, pairs: mostPairs, padding: padToken !== undefined });
    for (const [b, places] of batches.entries()) {
      const scores_R = await this.#batch(places.map((s) => at(sequences, s)));
      places.forEach((s, row) => (scores_S[s] = at(scores_R, row)));
      progress(b + 1, batches.length);
    }
    return scores_S;
  }

  /**
   * Scores sequences of three lengths one by one and together. Throws OnnxModelError when they differ by more than
   * rounding: then the graph ignores its mask, or was exported for one length.
   */
  async tryPadding(vocab: number): Promise<void> {
    const { padToken = -1 } = this.#options;
    const sequences = [1, 3, 6].map((length) =>
      Int32Array.from({ length }, (_, i) => (i + length) % vocab).map((token) =>
        token === padToken ? (token + 1) % vocab : token,
      ),
    );
    const alone = await this.score(sequences, { tokens: 1, sequences: 1 });
    const together = await this.score(sequences, { tokens: 64, sequences: sequences.length });
    alone.forEach((score, s) => {
      const other = at(together, s);
      if (Math.abs(score - other) > 1e-3 * Math.max(1, Math.abs(score)))
        throw this.#wrong(
          `a sequence alone has the score ${score}, and ${other} beside longer ones: padding changes it`,
        );
    });
  }

  async close(): Promise<void> {
    await this.#thread.close(new RetryableError('Closed', `${this.#path} is closed`));
  }

  #batch(sequences: readonly Int32Array[]): Promise<Float32Array> {
    const batch = padded(sequences, this.#options.padToken ?? 0, this.#output);
    return this.#thread.allOf(async () => {
      const message = await this.#answer((thread) => thread.postMessage(batch));
      if (message.type === 'failed') throw this.#wrong(message.reason, lessMemoryHint);
      if (message.type !== 'scores') throw this.#wrong('its thread said twice that it is ready');
      const wrong = wrongScores(sequences.length, message.shape);
      if (wrong !== undefined) throw this.#wrong(wrong);
      const { scores_R } = message;
      const broken = scores_R.find((score) => !Number.isFinite(score));
      if (broken !== undefined) throw this.#wrong(`it gives the score ${broken}`);
      return scores_R;
    });
  }

  #outputOf(facts: Parameters<typeof scoresOutput>[0]): string {
    const found = scoresOutput(facts);
    if ('wrong' in found) throw this.#wrong(found.wrong);
    return found.name;
  }

  async #answer(send: (thread: Worker) => void): Promise<FromClassifier> {
    const { onAlive = () => {}, limitMs = 600_000 } = this.#options;
    const alive = setInterval(onAlive, 1000);
    const tooLate = () => this.#wrong(`it took longer than ${limitMs / 1000} s`);
    return this.#thread.answer(send, { timeoutMs: limitMs, tooLate }).finally(() => clearInterval(alive));
  }

  #wrong(reason: string, hint = exportHint): OnnxModelError {
    return new OnnxModelError(`${this.#path}: ${reason}`, { where: this.#path, hint });
  }
}

/** Whether a model's folder holds a graph and no weights of petrel's own engine. */
export const isOnnxFolder = (names: readonly string[]): boolean =>
  names.includes(onnxFile) && !names.some((name) => name.endsWith('.safetensors'));

/** ONNX Runtime keeps the weights as the file has them, and those of products a second time in another order. */
export async function onnxBytes(folder: string, names: readonly string[]): Promise<number> {
  const files = names.filter((name) => name.startsWith(onnxFile));
  const sizes = await Promise.all(files.map(async (name) => (await stat(join(folder, name))).size));
  return 2 * sizes.reduce((sum, size) => sum + size, 0);
}

function padded(sequences: readonly Int32Array[], padToken: number, output: string): PaddedBatch {
  const length = Math.max(...sequences.map((tokens) => tokens.length));
  const tokens_RL = new Int32Array(sequences.length * length).fill(padToken);
  sequences.forEach((tokens, row) => tokens_RL.set(tokens, row * length));
  return { length, tokens_RL, lengths_R: Int32Array.from(sequences, (tokens) => tokens.length), output };
}
