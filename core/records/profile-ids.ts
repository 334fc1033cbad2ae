/** Ids of numeric profiles: runs with equal ids get equal bits for equal inputs. Jobs are addressed to them. */
import type { ComputeType } from '../ports/policy.ts';

/** Profile of runs that any worker may serve. */
export const anyProfile = 'any';

const bf16Prefix = 'det-bf16-';

/** `isa`: the instruction set, on whose rounding bf16 depends. fp32 has one order of sums on all of them. */
export function deterministicProfile(compute: ComputeType, arithmeticVersion: number, isa: string): string {
  return compute === 'fp32' ? `det-${arithmeticVersion}` : `${bf16Prefix}${arithmeticVersion}-${isa}`;
}

/** The compute type of a deterministic profile. */
export function computeOfProfile(id: string): ComputeType {
  return id.startsWith(bf16Prefix) ? 'bf16' : 'fp32';
}
