/** The proof that this process's engine gives the bits that its arithmetic names: a probe against recorded digests. */
import { deterministicProfile } from '../../core/records/profile-ids.ts';
import type { ComputeType } from '../../core/parameters.ts';
import type { EngineProof } from '../../core/wire/engine-proof.ts';
import { arithmeticVersions } from '../arithmetic.ts';
import { engineInfo } from '../engine-info.ts';
import { probeDigest } from './probe.ts';
import { recordedProbes } from './recorded.ts';

let proofs: readonly EngineProof[] | undefined;

/** Probes each compute type of this processor, once per thread. Throws what loading the engine throws. */
export function engineProofs(): readonly EngineProof[] {
  proofs ??= computes().map(proofOf);
  return proofs;
}

/** The digests that this process gives, by numeric profile: what `npm run record:arithmetic` records. */
export const probeDigests = (): Readonly<Record<string, string>> =>
  Object.fromEntries(computes().map((compute) => [profileOf(compute), probeDigest(compute)]));

const computes = (): readonly ComputeType[] => (engineInfo().bf16 ? ['fp32', 'bf16'] : ['fp32']);

const profileOf = (compute: ComputeType): string =>
  deterministicProfile(compute, arithmeticVersions[compute], engineInfo().isa);

function proofOf(compute: ComputeType): EngineProof {
  const profile = profileOf(compute);
  const recorded = recordedProbes[profile];
  const started = performance.now();
  const state = recorded === undefined ? 'unproved' : probeDigest(compute) === recorded ? 'proved' : 'refused';
  return { compute, profile, state, ms: Math.round(10 * (performance.now() - started)) / 10 };
}
