/**
 * Resuming a run whose arithmetic no trainer of this stack has. Its iterations after the newest
 * checkpoint cannot be replayed to the same bits. So the run continues from that checkpoint in a new term, which
 * applies the committed batches of those iterations again.
 */
import { damage } from '../../core/records/damage.ts';
import { keys } from '../../core/records/keys.ts';
import { offeredProfile } from '../../core/records/former-profiles.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import type { EngineFacts } from '../../core/wire/engine-facts.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { adoptableUntil } from '../../log/run/earlier-batches.ts';
import type { EngineChange } from '../../log/run/terms.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import { verifyCheckpoints } from '../checkpoints/verify.ts';
import type { TermPlan } from './next-term.ts';

/** The reason that such a term records; other reasons may follow it. */
const engineReason = 'engine';

/**
 * The arithmetic of the trainers, when none of them has the run's. Undefined when a trainer has it, or when there is no
 * trainer: then the run waits for one, and `status` shows this.
 */
export function otherArithmetic(profile: NumericProfile, trainers: readonly Presence[]): NumericProfile | undefined {
  const engines = trainers.flatMap((trainer) => trainer.engines).filter(({ name }) => name === profile.engine);
  if (!profile.deterministic) return inFp32(profile, engines);
  const wanted = offeredProfile(profile.id);
  const offers = engines.flatMap((engine) =>
    engine.computes.flatMap((compute) => {
      const id = engine.deterministic[compute];
      return id === undefined ? [] : [{ ...on(profile, engine), id, compute }];
    }),
  );
  if (offers.some(({ id }) => id === wanted)) return undefined;
  return offers.find(({ compute }) => compute === profile.compute) ?? offers[0];
}

/** A run in bf16 that moved to processors without it. */
function inFp32(profile: NumericProfile, engines: readonly EngineFacts[]): NumericProfile | undefined {
  const [engine] = engines;
  if (profile.compute !== 'bf16' || engine === undefined) return undefined;
  if (engines.some(({ computes }) => computes.includes('bf16'))) return undefined;
  return { ...on(profile, engine), compute: 'fp32' };
}

const on = (profile: NumericProfile, { device, build }: EngineFacts): NumericProfile => ({ ...profile, device, build });

/**
 * Reads checkpoints, newest first, until one is complete. `position`: the last iteration that remains valid; without it
 * all remain.
 */
export async function engineChange(
  log: RunLog,
  profile: NumericProfile,
  position: number,
  say: (text: string) => void,
): Promise<EngineChange> {
  for (const { iteration } of await log.checkpointNames(position)) {
    const [verdict] = await verifyCheckpoints(log, iteration, say);
    if (verdict?.ok === true) return { profile, from: iteration };
    say(`checkpoint ${iteration} cannot be used: ${verdict?.problem ?? 'it is gone'}`);
  }
  if ((await log.first()) === 0) return { profile, from: 0 };
  throw damage('MissingRecord', keys.checkpoints(log.runId), 'no checkpoint can be used, and a fork has no other base');
}

/** The plan of the new term: the given plan, changed, or a new one. */
export function engineTermPlan(plan: TermPlan | undefined, head: Head): TermPlan {
  const others = { head, position: head.position, abandoned: [], rival: undefined, concerns: [], changes: [] };
  return { ...(plan ?? others), reason: plan === undefined ? engineReason : `${engineReason}; ${plan.reason}` };
}

const shown = ({ id, compute, deterministic }: NumericProfile): string => (deterministic ? id : compute);

/** One line for people. `redone`: the last iteration that remains valid, when it is not the end of the log. */
export function engineText(head: Head, { profile, from }: EngineChange, redone: number | undefined): string {
  const until = redone ?? adoptableUntil(head);
  const again =
    until > from
      ? ` and applies the batches of ${until === from + 1 ? `iteration ${until}` : `iterations ${from + 1} to ${until}`} again`
      : '';
  return (
    `no trainer here computes with the profile ${shown(head.profile)}, only with ${shown(profile)}: ` +
    `the run continues after iteration ${from} in a new term${again}`
  );
}
