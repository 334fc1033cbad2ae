/** What the native engine says of itself on this machine. */
import { deterministicProfile } from '../core/records/profile-ids.ts';
import type { ComputeType } from '../core/parameters.ts';
import type { EngineFacts } from '../core/wire/engine-facts.ts';
import { arithmeticVersions } from './arithmetic.ts';
import { engineInfo } from './engine-info.ts';
import { engineProofs } from './proof/index.ts';

export const nativeName = 'native';

/**
 * Probes this processor. Every one gives the same bits in fp32, so `auto` is fp32 in runs whose bits repeat. Throws
 * what loading the engine throws.
 */
export function nativeFacts(): EngineFacts {
  const { isa, bf16, build, addedFlags } = engineInfo();
  const proofs = engineProofs();
  const refused = new Set(proofs.filter(({ state }) => state === 'refused').map(({ compute }) => compute));
  const profileIn = (compute: ComputeType) =>
    refused.has(compute)
      ? {}
      : { [compute]: deterministicProfile(compute, arithmeticVersions[compute], isa, addedFlags) };
  return {
    name: nativeName,
    device: isa,
    build,
    computes: bf16 ? ['fp32', 'bf16'] : ['fp32'],
    auto: { deterministic: 'fp32', otherwise: bf16 ? 'bf16' : 'fp32' },
    randomness: 'counter',
    deterministic: { ...profileIn('fp32'), ...(bf16 && profileIn('bf16')) },
    proofs: [...proofs],
  };
}
