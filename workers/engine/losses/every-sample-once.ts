/** The micro-batches of a batch's first epoch: a model says something of every sample once. */
import { at } from '../../../core/at.ts';
import type { BatchLayout } from '../../../core/records/schema.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { cutMicroBatch } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';

/** What must be known of a batch before a model reads it. */
export type SampledLayout = Pick<
  BatchTensors,
  'tokens_N' | 'offsets_S1' | 'scored_T' | 'scoredOffsets_S1' | 'tokenColumns' | 'microOffsets_M1' | 'microSamples'
>;

/**
 * `onDone`: called after each, before the next is cut. `mostTokens`: of one pass, where it differs from the batch's
 * own; a sequence that is longer is a pass of its own.
 */
export function* everySampleOnce(
  layout: SampledLayout,
  batchLayout: BatchLayout | undefined,
  onDone: (done: number, total: number) => void,
  mostTokens?: number,
): Generator<MicroBatch> {
  const planned = firstEpoch(layout);
  const passes = mostTokens === undefined ? planned : neighbours(planned.flat(), layout, mostTokens);
  for (const [done, samples] of passes.entries()) {
    yield cutMicroBatch(layout, Int32Array.from(samples), batchLayout);
    onDone(done + 1, passes.length);
  }
}

function firstEpoch({ microOffsets_M1, microSamples }: SampledLayout): number[][] {
  const seen = new Set<number>();
  const passes: number[][] = [];
  for (let m = 0; m + 1 < microOffsets_M1.length; m++) {
    const samples = new Set(microSamples.subarray(microOffsets_M1[m], microOffsets_M1[m + 1]));
    const others = [...samples].filter((b) => !seen.has(b));
    others.forEach((b) => seen.add(b));
    if (others.length > 0) passes.push(others);
  }
  return passes;
}

/**
 * Takes as many samples as fit, in their order. A prompt that is shared is counted with each response, so a pass may
 * have less.
 */
function neighbours(samples: readonly number[], { offsets_S1 }: SampledLayout, mostTokens: number): number[][] {
  const passes: number[][] = [];
  let room = 0;
  for (const b of samples) {
    const tokens = at(offsets_S1, b + 1) - at(offsets_S1, b);
    const last = passes.at(-1);
    if (last !== undefined && tokens <= room) last.push(b);
    else {
      passes.push([b]);
      room = mostTokens;
    }
    room -= tokens;
  }
  return passes;
}
