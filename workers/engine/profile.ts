/** The arithmetic that a run gets on this machine, and the runs that this machine can reproduce bit for bit. */
import { UnfitError } from '../../core/errors.ts';
import type { ComputeType, EngineOptions } from '../../core/ports/policy.ts';
import { blockHashOf, namedBlockHash } from '../../core/records/block-hash.ts';
import { offeredProfile } from '../../core/records/former-profiles.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import { refusedHint, refusedText } from '../../core/wire/engine-proof.ts';
import type { EngineProof } from '../../core/wire/engine-proof.ts';
import type { EngineSettings } from '../../core/wire/jobs.ts';
import { anyProfile, deterministicProfile } from '../../core/records/profile-ids.ts';
import { arithmeticVersions } from '../../native/arithmetic.ts';
import type { EngineInfo } from '../../native/engine-info.ts';

/** The engine's description of itself. */
export type EngineFacts = Pick<EngineInfo, 'isa' | 'bf16' | 'build'> & {
  /** Names what a person added to the flags of its build; absent: nothing. */
  readonly addedFlags?: string;
  /** What it proved about its bits; absent: nothing is known. */
  readonly proofs?: readonly EngineProof[];
};

const deterministicId = (compute: ComputeType, { isa, addedFlags }: Pick<EngineFacts, 'isa' | 'addedFlags'>): string =>
  deterministicProfile(compute, arithmeticVersions[compute], isa, addedFlags);

/** Throws UnfitError `UnprovenBits` where the probe of this engine has other bits than its profile names. */
function requireBits(compute: ComputeType, { proofs = [] }: Pick<EngineFacts, 'proofs'>): void {
  const refused = proofs.find((proof) => proof.compute === compute && proof.state === 'refused');
  if (refused !== undefined) throw new UnfitError('UnprovenBits', refusedText(refused), { hint: refusedHint });
}

/**
 * `auto` is fp32 in a deterministic run, because every processor gives its bits. Throws UnfitError `UnprovenBits` for a
 * deterministic run where this engine has other bits.
 */
export function resolveProfile(settings: EngineSettings, facts: EngineFacts): NumericProfile {
  const compute =
    settings.compute !== 'auto' ? settings.compute : facts.bf16 && !settings.deterministic ? 'bf16' : 'fp32';
  if (settings.deterministic) requireBits(compute, facts);
  return {
    id: settings.deterministic ? deterministicId(compute, facts) : anyProfile,
    compute,
    deterministic: settings.deterministic,
    isa: facts.isa,
    engine: facts.build,
    maxTokensPerMicroBatch: settings.maxTokensPerMicroBatch,
    ...namedBlockHash(blockHashOf(settings)),
  };
}

/**
 * How this machine serves a run's profile. Throws UnfitError: `CannotReproduce` when only another build can reproduce
 * it, `CannotCompute` when the processor lacks its compute type, `UnprovenBits` when this engine has other bits than it
 * says.
 */
export function engineOptionsOf(profile: NumericProfile, facts: EngineFacts, threads: number): EngineOptions {
  if (!computesOf(facts).includes(profile.compute)) {
    throw new UnfitError(
      'CannotCompute',
      `the run computes in ${profile.compute}; this processor (${facts.isa}) computes in ${computesOf(facts).join(' and ')}`,
      {
        hint: `start a worker on a processor with AVX512_BF16; or, when no worker has one: stop the run and resume it`,
      },
    );
  }
  const own = deterministicId(profile.compute, facts);
  if (profile.deterministic && offeredProfile(profile.id) !== own) {
    throw new UnfitError('CannotReproduce', `the run needs the numeric profile ${profile.id}; this engine has ${own}`, {
      hint: 'stop the run and resume it: it then continues from its newest checkpoint with this engine',
    });
  }
  if (profile.deterministic) requireBits(profile.compute, facts);
  return { compute: profile.compute, deterministic: profile.deterministic, threads };
}

/** The profiles that this machine can serve. */
export function profilesOf(facts: Omit<EngineFacts, 'build'>): readonly string[] {
  const refused = (facts.proofs ?? []).filter(({ state }) => state === 'refused').map(({ compute }) => compute);
  const computes = computesOf(facts).filter((compute) => !refused.includes(compute));
  return [anyProfile, ...computes.map((compute) => deterministicId(compute, facts))];
}

/** The compute types of this machine. */
export function computesOf({ bf16 }: Pick<EngineFacts, 'bf16'>): readonly ComputeType[] {
  return bf16 ? ['fp32', 'bf16'] : ['fp32'];
}
