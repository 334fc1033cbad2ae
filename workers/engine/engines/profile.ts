/** The arithmetic that a run gets from an engine, and the runs that an engine serves: both follow from its facts. */
import { divisionText } from '../../../core/division.ts';
import { UnfitError } from '../../../core/errors.ts';
import type { ComputeType } from '../../../core/parameters.ts';
import { blockHashOf, namedBlockHash } from '../../../core/records/block-hash.ts';
import { offeredProfile } from '../../../core/records/former-profiles.ts';
import { anyProfile, queueOf } from '../../../core/records/profile-ids.ts';
import type { NumericProfile } from '../../../core/records/schema.ts';
import { namesOfEngines } from '../../../core/sampling-server.ts';
import type { EngineFacts } from '../../../core/wire/engine-facts.ts';
import { refusedHint, refusedText } from '../../../core/wire/engine-proof.ts';
import type { EngineSettings } from '../../../core/wire/jobs/index.ts';

/** The facts of one of these engines. Throws UnfitError `OtherEngine` when there is none of this name. */
export function factsOf(engine: string, facts: readonly EngineFacts[]): EngineFacts {
  const found = facts.find(({ name }) => name === engine);
  if (found !== undefined) return found;
  const names = namesOfEngines(facts).join(' and ');
  throw new UnfitError('OtherEngine', `the run needs the engine ${engine}; this worker has ${names}`, {
    hint: `start a worker with the engine ${engine}, or a run with trainer.engine=${facts[0]?.name ?? 'native'}`,
  });
}

/**
 * The profile of a run with these settings. Throws UnfitError: `OtherEngine`, `UnprovenBits` for a deterministic run
 * where the engine has other bits than it says, `CannotReproduce` where it does not repeat its bits.
 */
export function resolveProfile(settings: EngineSettings, engines: readonly EngineFacts[]): NumericProfile {
  const facts = factsOf(settings.engine, engines);
  const { auto, deterministic, device, build } = facts;
  const automatic = settings.deterministic ? auto.deterministic : auto.otherwise;
  const compute = settings.compute === 'auto' ? automatic : settings.compute;
  if (settings.deterministic) requireProven(compute, facts);
  const id = settings.deterministic ? deterministic[compute] : anyProfile;
  if (id === undefined)
    throw new UnfitError('CannotReproduce', `the engine ${facts.name} does not repeat its bits in ${compute}`, {
      hint: 'deterministic: false, or another compute_dtype',
    });
  return {
    id,
    engine: facts.name,
    device,
    build,
    compute,
    deterministic: settings.deterministic,
    maxTokensPerMicroBatch: settings.maxTokensPerMicroBatch,
    ...(settings.ranks !== undefined && { ranks: settings.ranks }),
    ...(settings.division && { division: settings.division }),
    ...(facts.naming !== undefined && !settings.deterministic && { naming: facts.naming }),
    ...namedBlockHash(blockHashOf(settings)),
  };
}

/**
 * Throws UnfitError where none of these engines serves the profile: `OtherEngine`, `CannotCompute` when the device
 * lacks its compute type, `CannotReproduce` when only another build can reproduce it, `UnprovenBits` when the engine
 * has other bits than it says.
 */
export function requireServed(profile: NumericProfile, engines: readonly EngineFacts[]): EngineFacts {
  const facts = factsOf(profile.engine, engines);
  const { computes, device, deterministic } = facts;
  if (!computes.includes(profile.compute)) {
    throw new UnfitError(
      'CannotCompute',
      `the run computes in ${profile.compute}; this processor (${device}) computes in ${computes.join(' and ')}`,
      {
        hint: `start a worker whose device computes in ${profile.compute}; or, when none has: stop the run and resume it`,
      },
    );
  }
  if (!profile.deterministic) return facts;
  const own = deterministic[profile.compute];
  if (own === undefined) requireProven(profile.compute, facts);
  if (own !== offeredProfile(profile.id)) {
    throw new UnfitError(
      'CannotReproduce',
      `the run needs the numeric profile ${profile.id}; this engine has ${own ?? 'none that repeats its bits'}`,
      { hint: 'stop the run and resume it: it then continues from its newest checkpoint with this engine' },
    );
  }
  return facts;
}

/** Throws UnfitError `UnprovenBits` where the probe of this engine has other bits than its profile names. */
function requireProven(compute: ComputeType, { proofs = [] }: Pick<EngineFacts, 'proofs'>): void {
  const refused = proofs.find((proof) => proof.compute === compute && proof.state === 'refused');
  if (refused !== undefined) throw new UnfitError('UnprovenBits', refusedText(refused), { hint: refusedHint });
}

/** Weights in memory serve only jobs of the same engine and the same kind of arithmetic. */
export const kindOf = ({ engine, compute, deterministic, ranks = 1, division }: NumericProfile): string =>
  `${engine} ${compute} ${deterministic} ${ranks} ${divisionText(division)}`;

/** The queues whose jobs an engine serves. */
export function queuesOf({ name, deterministic }: EngineFacts): readonly string[] {
  const repeats = [deterministic.fp32, deterministic.bf16].filter((id) => id !== undefined);
  return [queueOf({ engine: name, id: anyProfile }), ...repeats];
}
