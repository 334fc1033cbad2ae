/** The tokens of one sample as bytes, and the running hash that links every part of them to all earlier ones. */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { at } from '../../../core/at.ts';
import type { Digest, JobId, RunId } from '../../../core/ids.ts';

/** Tokens with their log-probs; both arrays have the same length. */
export interface TokenRun {
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly samplingLogProbs: number[];
}

/**
 * What decides a sample's tokens, beside its draw and number: the tokens themselves, where random bits are counters;
 * their distribution, where a sampler draws its own. There two workers of one job may make different tokens for one
 * sample, and the hash tells them apart.
 */
export interface JobIdentity {
  readonly runId: RunId;
  readonly jobId: JobId;
  readonly weights: Digest;
  readonly arithmetic: string;
}

/** i32, f32, f32. */
export const bytesPerToken = 12;

/**
 * Grows with a sample. Equal for equal tokens and log-probs of the same sample of the same job, however they were
 * divided into messages.
 */
export class Lineage {
  readonly #hash: Hash;

  private constructor(hash: Hash) {
    this.#hash = hash;
  }

  static of({ runId, jobId, weights, arithmetic }: JobIdentity, draw: number, sample: number): Lineage {
    return new Lineage(createHash('sha256').update(JSON.stringify([runId, jobId, weights, arithmetic, draw, sample])));
  }

  append(bytes: Uint8Array): this {
    this.#hash.update(bytes);
    return this;
  }

  copy(): Lineage {
    return new Lineage(this.#hash.copy());
  }

  /** 128 bits protect against accidents, not against forgery. */
  get value(): string {
    return this.#hash.copy().digest('hex').slice(0, 32);
  }
}

/** The tokens from `start` to `end`. */
export function encodeTokens({ tokens, logProbs, samplingLogProbs }: TokenRun, start: number, end: number): Buffer {
  const bytes = Buffer.alloc((end - start) * bytesPerToken);
  for (let i = start, to = 0; i < end; i++, to += bytesPerToken) {
    bytes.writeInt32LE(at(tokens, i), to);
    bytes.writeFloatLE(at(logProbs, i), to + 4);
    bytes.writeFloatLE(at(samplingLogProbs, i), to + 8);
  }
  return bytes;
}

export function decodeTokens(bytes: Buffer): TokenRun {
  const run: TokenRun = { tokens: [], logProbs: [], samplingLogProbs: [] };
  for (let from = 0; from + bytesPerToken <= bytes.length; from += bytesPerToken) {
    run.tokens.push(bytes.readInt32LE(from));
    run.logProbs.push(bytes.readFloatLE(from + 4));
    run.samplingLogProbs.push(bytes.readFloatLE(from + 8));
  }
  return run;
}
