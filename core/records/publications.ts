/**
 * What samplers load: a policy's weights, all parameters one after the other in canonical order, without gaps.
 *
 * ```
 *   F32    every value in fp32, as in the state: the digest is the weights' own
 *   BF16   the values that a sampler in bf16 computes with: matrices in bf16, what is read in fp32 in fp32
 * ```
 *
 * The digest of a publication is the root over the blocks of these bytes (FORMAT.md).
 */
import { at } from '../at.ts';
import type { Digest } from '../ids.ts';
import type { EngineParameter, ParameterInfo, WeightsFormat } from '../parameters.ts';
import { blockHashOf } from './block-hash.ts';
import type { NumericProfile } from './schema.ts';

export interface Publication {
  readonly format: WeightsFormat;
  readonly digest: Digest;
}

/** How trainers of this profile publish the policy. The runs whose blocks are hashed by SHA-256 are older than BF16. */
export const publishedFormat = (profile: Pick<NumericProfile, 'compute' | 'blockHash'>): WeightsFormat =>
  profile.compute === 'bf16' && blockHashOf(profile) === 'blake3' ? 'BF16' : 'F32';

/** What samplers load of a component. A term's record names no publications, and older updates only F32. */
export function publicationOf(component: {
  readonly weightsDigest: Digest;
  readonly publications?: Readonly<Partial<Record<WeightsFormat, Digest>>>;
}): Publication {
  const rounded = component.publications?.BF16;
  return rounded === undefined
    ? { format: 'F32', digest: component.weightsDigest }
    : { format: 'BF16', digest: rounded };
}

/**
 * One parameter in a publication: elements [start, end) of the weights, bytes [firstByte, endByte) of the publication.
 */
export interface PublishedTensor extends Pick<ParameterInfo, 'name' | 'shape'> {
  readonly dtype: 'F32' | 'BF16';
  readonly start: number;
  readonly end: number;
  readonly firstByte: number;
  readonly endByte: number;
}

export const bytesOfDtype = { F32: 4, BF16: 2 } as const;

export function publishedTensors(parameters: readonly EngineParameter[], format: WeightsFormat): PublishedTensor[] {
  let firstByte = 0;
  return parameters.map(({ name, shape, offset, size, computed }) => {
    const dtype = format === 'F32' ? 'F32' : computed;
    const endByte = firstByte + size * bytesOfDtype[dtype];
    const tensor = { name, shape, dtype, start: offset, end: offset + size, firstByte, endByte };
    firstByte = endByte;
    return tensor;
  });
}

/** Bytes of the whole publication. */
export const publishedBytes = (parameters: readonly EngineParameter[], format: WeightsFormat): number =>
  at(publishedTensors(parameters, format), -1).endByte;

/** The publication in a job. Absent where it is the fp32 values: the digest of those is in the input. */
export const publishedAs = (publication: Publication): { readonly publication?: Publication } =>
  publication.format === 'F32' ? {} : { publication };
