import type { BatchTensors } from '../../../models/batch-tensors.ts';

/** The rows of a batch in the form of core/rl: where the tokens of each sample begin, and which tokens count. */
export function rowsOf(layout: Pick<BatchTensors, 'scoredOffsets_S1' | 'mask_T'>) {
  return { offsets_S1: layout.scoredOffsets_S1, mask_T: layout.mask_T };
}
