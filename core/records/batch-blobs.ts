import type { Digest } from '../ids.ts';

/** The blobs that hold a batch, as its record and the output of its job name them: one, or an index and its shards. */
export const blobsOfBatch = ({
  tensors,
  shards = [],
}: {
  readonly tensors: Digest;
  readonly shards?: readonly Digest[] | undefined;
}): readonly Digest[] => [tensors, ...shards];
