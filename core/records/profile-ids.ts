/** Ids of numeric profiles: runs with equal ids get equal bits for equal inputs. Jobs are addressed to them. */
import type { ComputeType } from '../ports/policy.ts';

/** Profile of runs that any worker may serve. */
export const anyProfile = 'any';

const bf16Prefix = 'det-bf16-';

/**
 * `isa`: the instruction set, on whose rounding bf16 depends. fp32 has one order of sums on all of them. `addedFlags`
 * names what a person added to the flags of the engine's build.
 */
export function deterministicProfile(
  compute: ComputeType,
  arithmeticVersion: number,
  isa: string,
  addedFlags = '',
): string {
  const id = compute === 'fp32' ? `det-${arithmeticVersion}` : `${bf16Prefix}${arithmeticVersion}-${isa}`;
  return addedFlags === '' ? id : `${id}-flags-${addedFlags}`;
}

/** The compute type of a deterministic profile. */
export function computeOfProfile(id: string): ComputeType {
  return id.startsWith(bf16Prefix) ? 'bf16' : 'fp32';
}
