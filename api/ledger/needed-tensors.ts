/** The tensors that a batch consists of, and those that it was made from. */
import type { InputFacts } from './inputs.ts';
import type { Objects } from './objects.ts';
import type { Batch } from './records.ts';
import type { Results } from './results.ts';
import type { Tensors } from './tensors.ts';

export interface CompositionPorts {
  readonly objects: Objects;
  readonly results: Results;
  readonly inputs: InputFacts;
  readonly deep: boolean;
  /** Accepts a missing object when retention may have removed it. */
  readonly absent: (k: number, key: string, why: string) => void;
}

/** Tensors of a batch, or of what it was made from. `key`: of the record that names them. */
export async function neededTensors(
  { objects, deep, absent }: CompositionPorts,
  batch: Batch,
  digest: string,
  key: string,
): Promise<Tensors | undefined> {
  const blobKey = objects.keys.blob(digest);
  if ((await objects.size(blobKey)) === undefined) absent(batch.iteration, blobKey, key);
  return objects.tensors(blobKey, digest, deep);
}
