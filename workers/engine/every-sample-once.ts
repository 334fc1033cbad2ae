/** The micro-batches of a batch's first epoch: a model says something of every sample once. */
import type { BatchLayout } from '../../core/records/schema.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';
import { cutMicroBatch } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';

/** What must be known of a batch before a model reads it. */
export type SampledLayout = Pick<
  BatchTensors,
  'tokens_N' | 'offsets_S1' | 'scored_T' | 'scoredOffsets_S1' | 'microOffsets_M1' | 'microSamples'
>;

/** `onDone`: called after each, before the next is cut. */
export function* everySampleOnce(
  layout: SampledLayout,
  batchLayout: BatchLayout | undefined,
  onDone: (done: number, total: number) => void,
): Generator<MicroBatch> {
  const total = layout.microOffsets_M1.length - 1;
  const seen = new Set<number>();
  for (let m = 0; m < total; m++) {
    const samples = layout.microSamples
      .subarray(layout.microOffsets_M1[m], layout.microOffsets_M1[m + 1])
      .filter((b) => !seen.has(b));
    samples.forEach((b) => seen.add(b));
    if (samples.length === 0) continue;
    yield cutMicroBatch(layout, samples, batchLayout);
    onDone(m + 1, total);
  }
}
