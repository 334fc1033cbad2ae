/** What arithmetic a run gets on this machine, and which runs this machine can serve bit for bit. */
import { TerminalError } from '../../core/errors.ts';
import type { EngineOptions } from '../../core/ports.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import type { EngineSettings } from '../../core/wire/jobs.ts';

/** What the engine says about itself. */
export interface EngineFacts {
  readonly isa: string;
  readonly bf16: boolean;
  /** Hash of the engine's sources. */
  readonly build: string;
}

/** Profile id of runs that any worker may serve. */
export const anyProfile = 'any';

/** Deterministic arithmetic has one order of sums on every instruction set, so only the engine's build counts. */
export function deterministicProfile(facts: EngineFacts): string {
  return `det-${facts.build.slice(0, 12)}`;
}

export function resolveProfile(settings: EngineSettings, facts: EngineFacts): NumericProfile {
  const compute =
    settings.compute !== 'auto' ? settings.compute : facts.bf16 && !settings.deterministic ? 'bf16' : 'fp32';
  return {
    id: settings.deterministic ? deterministicProfile(facts) : anyProfile,
    compute,
    deterministic: settings.deterministic,
    isa: facts.isa,
    engine: facts.build,
    maxTokensPerMicroBatch: settings.maxTokensPerMicroBatch,
  };
}

/** How this machine serves a run's profile. Throws TerminalError `CannotReproduce` when it promised what it cannot do. */
export function engineOptionsOf(profile: NumericProfile, facts: EngineFacts, threads: number): EngineOptions {
  if (profile.deterministic && profile.id !== deterministicProfile(facts)) {
    throw new TerminalError(
      'CannotReproduce',
      `The run needs the numeric profile ${profile.id}; this engine has ${deterministicProfile(facts)}`,
      {
        hint: 'Run it with the petrel build that started it',
      },
    );
  }
  const compute = profile.compute === 'bf16' && !facts.bf16 ? 'fp32' : profile.compute;
  return { compute, deterministic: profile.deterministic, threads };
}
