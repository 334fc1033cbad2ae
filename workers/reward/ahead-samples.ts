/** The samples of a message of the rollout worker, as they are scored ahead. */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import type { EndedSamples } from '../../core/wire/ended-samples.ts';
import type { ScoringSettings } from '../../core/wire/jobs/index.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import { at } from '../../core/at.ts';
import type { EndedSample } from '../engine/job/context.ts';

export function samplesIn({ samples }: EndedSamples): EndedSample[] {
  return samples.map(({ tokens, ...sample }) => ({ ...sample, tokens: tokensOf(tokens) }));
}

export const tokensText = (tokens: Int32Array): string =>
  Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength).toString('base64');

function tokensOf(text: string): Int32Array {
  const bytes = Buffer.from(text, 'base64');
  return Int32Array.from({ length: Math.floor(bytes.length / 4) }, (_, i) => bytes.readInt32LE(4 * i));
}

/** Sample `b` of trajectories. */
export function sampleAt(t: Trajectories, b: number): EndedSample {
  return {
    draw: at(t.draw_S, b),
    row: at(t.row_S, b),
    sample: at(t.session_S, b),
    tokens: t.responseTokens_T.slice(at(t.responseOffsets_S1, b), at(t.responseOffsets_S1, b + 1)),
  };
}

/** What decides the score of a sample, as its key: equal for the rollout worker's message and for the reward job. */
export class SampleKeys {
  readonly #scoring: Hash;

  /** `host`: the id of the run's scorer, its settings and limits. */
  constructor(host: string, { model, dataset }: Pick<ScoringSettings, 'model' | 'dataset'>) {
    this.#scoring = createHash('sha256').update(JSON.stringify([host, model, dataset]));
  }

  of({ draw, row, sample, tokens }: EndedSample): string {
    const bytes = new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
    return this.#scoring
      .copy()
      .update(JSON.stringify([draw, row, sample]))
      .update(bytes)
      .digest('hex');
  }
}
