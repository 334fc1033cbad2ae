/** The blob of what a sampler of the user's own said last. Counters name it as the controller `sampler`. */
import { z } from 'zod';
import { damage } from '../records/damage.ts';
import type { Counters, RunInputs } from '../records/schema.ts';
import type { Sampling } from '../rl/own/sampler.ts';

const stored = z.object({
  /**
   * The batch after which it holds; 0 and an empty state: before the first. They make every state a different object.
   */
  iteration: z.int().nonnegative(),
  parentState: z.string(),
  /** Digests of the module and the rows that it is about. Of others it says nothing. */
  module: z.string(),
  train: z.string(),
  weights: z.array(z.number().nonnegative()),
  state: z.unknown(),
});

export interface SamplingOf {
  readonly iteration: number;
  readonly parentState: string;
  readonly module: string;
  readonly train: string;
}

export const encodeSampling = ({ weights, state }: Sampling, of: SamplingOf): z.infer<typeof stored> => ({
  ...of,
  weights: [...weights],
  state,
});

/**
 * What the sampler of a run said last: after the batch before, or when the run was created. Throws PauseError
 * `DamagedRecord`, and as `read` does.
 */
export async function lastSampling(
  read: (digest: string) => Promise<unknown>,
  {
    sampler,
    train,
    trainRows,
  }: Pick<RunInputs, 'train' | 'trainRows'> & { readonly sampler: NonNullable<RunInputs['sampler']> },
  counters: Counters | undefined,
): Promise<Sampling> {
  const controller = counters?.controllers['sampler'];
  const digests = [...(typeof controller === 'object' ? [controller.blob] : []), sampler.start];
  for (const digest of digests) {
    const { success, data, error } = stored.safeParse(await read(digest));
    if (!success) throw damage('DamagedRecord', digest, `no weights of a sampler: ${z.prettifyError(error)}`);
    if (data.module === sampler.module && data.train === train && data.weights.length === trainRows) return data;
  }
  throw damage('DamagedRecord', sampler.start, 'these weights are of another sampler, or of other rows');
}
