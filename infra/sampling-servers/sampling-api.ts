/** What a server that samples must be able to do, whatever its interface: vllm.ts and sglang.ts say it to theirs. */
import type { SamplingSettings } from '../../core/sampling-settings.ts';
import type { Asked } from './connection.ts';

/** What a server says of itself. */
export interface ServerFacts {
  /** Its kind and version, such as `vllm 0.32.0`. */
  readonly version: string;
  /** Name of the model, as requests name it. */
  readonly model: string;
  /** Folder or name from which the server has loaded it. */
  readonly root: string;
  /** Longest prompt and response together, in tokens. */
  readonly maxModelLen: number;
  /**
   * The distribution under which it gives the log-prob of a sampled token: `model`, softmax(logits); `tempered`,
   * softmax(logits / temperature); `sampled`, that of what is left after filters and penalties. Penalties are in all
   * but the first.
   */
  readonly logProbs: 'model' | 'tempered' | 'sampled';
}

/** One sample. */
export interface AskedSample {
  /** The prompt, and the tokens from which it continues. */
  readonly prompt: readonly number[];
  readonly sampling: SamplingSettings;
  readonly maxNewTokens: number;
  readonly stopTokens: readonly number[];
  /** An integer of at most 53 bits. */
  readonly seed: number;
  /** Name of the weights: keys and values of others must not serve this prompt. */
  readonly label: string;
}

/** Tokens of one sample that came together. */
export interface SampledTokens {
  readonly tokens: readonly number[];
  /** The log-prob of each of these tokens, under the distribution that the facts name. */
  readonly logProbs: readonly number[];
  /** 1: a stop token, 2: the length, `abort`: somebody has ended it. Absent: it goes on. */
  readonly finish?: 1 | 2 | 'abort';
  /** Labels of the weights that made the tokens of the sample so far. Absent: the server does not say. */
  readonly labels?: readonly string[];
}

/** The label of weights that no one has replaced since the server started. */
export const untouched = 'default';
/** How labels begin that petrel gives, and those that it gives while it loads. */
export const ownLabel = 'petrel-';
export const loadingLabel = `${ownLabel}loading`;
/** The label of weights of which nothing is known. */
export const unknownLabel = 'unknown';

export interface SamplingApi {
  /**
   * Asks what the server is. Undefined: it makes no samples, since a worker loads weights into it, or died in the
   * middle of that. Throws PauseError `WrongServer` for one that lacks what a run needs.
   */
  describe(asked?: Asked): Promise<ServerFacts | undefined>;
  /** Lets a server make samples again that a worker left in the middle of a load. Nothing is known of its weights. */
  wake(asked?: Asked): Promise<void>;
  /** The label of the weights that it has. */
  label(asked?: Asked): Promise<string>;
  setLabel(label: string, asked?: Asked): Promise<void>;
  /** Ends all samples, takes the weights from this folder and forgets keys and values. A failure leaves a mixture. */
  load(folder: string, asked?: Asked): Promise<void>;
  /** Throws RetryableError `ServerNonsense` for an answer without token ids and log-probs. */
  sample(sample: AskedSample, facts: Pick<ServerFacts, 'model'>, asked?: Asked): AsyncIterable<SampledTokens>;
}
