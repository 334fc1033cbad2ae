/**
 * Resuming a run with another arithmetic: no trainer of this stack has the run's, or its user wants another engine or
 * another number of processes. Iterations after the newest checkpoint cannot be replayed to the same bits. So the run
 * continues from that checkpoint in a new term, which applies the committed batches of those iterations again.
 */
import { divisionOf, divisionText } from '../../core/division.ts';
import type { DividedTrainer } from '../../core/division.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { damage } from '../../core/records/damage.ts';
import { keys } from '../../core/records/keys.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { offeredProfile } from '../../core/records/former-profiles.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import type { EngineFacts } from '../../core/wire/engine-facts.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { namesOfEngines } from '../../core/sampling-server.ts';
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

/**
 * The arithmetic that a changed recipe asks for: of another engine, or with another number of its processes. Undefined
 * when it is the run's own. Throws InvalidInputError when no trainer of this stack has the engine.
 */
export function chosenArithmetic(
  profile: NumericProfile,
  trainer: Pick<Recipe['trainer'], 'engine'> & DividedTrainer,
  trainers: readonly Presence[],
): NumericProfile | undefined {
  const { engine, fsdp_size: ranks } = trainer;
  const division = divisionOf(trainer);
  const { ranks: ownRanks = 1, division: ownDivision, naming: _, ...own } = profile;
  const same = divisionText(division) === divisionText(ownDivision);
  if (engine === own.engine && ranks === ownRanks && same) return undefined;
  const engines = trainers.flatMap((trainer) => trainer.engines);
  const facts = engines.find(({ name }) => name === engine);
  const where = 'trainer.engine';
  if (facts === undefined) {
    const names = namesOfEngines(engines).join(', ');
    throw new InvalidInputError(`${where}: no trainer has the engine ${engine}; they have ${names || 'none'}`, {
      where,
      hint: `petrel engine install ${engine}, then petrel down and petrel up`,
    });
  }
  const compute = facts.computes.includes(own.compute) ? own.compute : 'fp32';
  const id = own.deterministic ? facts.deterministic[compute] : own.id;
  if (id === undefined)
    throw new InvalidInputError(`${where}: the engine ${engine} does not repeat its bits in ${compute}`, {
      where,
      hint: 'keep the engine: the run promises its bits (deterministic: true)',
    });
  const { naming } = facts;
  return {
    ...on(own, facts),
    ...{ engine, id, compute },
    ...(ranks > 1 && { ranks }),
    ...(division && { division }),
    ...(naming !== undefined && !own.deterministic && { naming }),
  };
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
  for (const { iteration } of await log.checkpoints.names(position)) {
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

/**
 * Throws InvalidInputError where batches would be applied again whose passes fewer processes would share than did.
 * `redone`: as in engineText.
 */
export function refuseLongerShares(head: Head, { profile, from }: EngineChange, redone: number | undefined): void {
  const [before, now] = [head.profile, profile].map(({ division }) => division?.sequence ?? 1) as [number, number];
  const until = redone ?? adoptableUntil(head);
  if (now >= before || until <= from) return;
  const where = 'trainer.ulysses_sequence_parallel_size';
  throw new InvalidInputError(
    `${where}: iterations ${from + 1} to ${until} would be applied again, in passes of up to ` +
      `${head.profile.maxTokensPerMicroBatch} tokens that ${before} processes shared; now ${now} would`,
    { where, hint: `keep ${where}=${before}; or go back to the checkpoint of iteration ${from}: --from ${from}` },
  );
}

const shown = ({ id, compute, deterministic }: NumericProfile): string => (deterministic ? id : compute);

function named({ engine, ranks = 1, division = {} }: NumericProfile): string {
  const { sequence = 1, tensor = 1, experts = 1, offload = false, state } = division;
  const shared = [
    ...(sequence > 1 ? [`${sequence} share tokens`] : []),
    ...(tensor > 1 ? [`${tensor} share matrices`] : []),
    ...(experts > 1 ? [`${experts} share experts`] : []),
    ...(offload ? ['with its state in the machine’s memory'] : []),
    ...(state === undefined ? [] : [`with its state in ${state}`]),
  ];
  const processes = ranks === 1 ? engine : `${engine} in ${ranks} processes`;
  return shared.length === 0 ? processes : `${processes} (${shared.join(', ')})`;
}

/** One line for people. `redone`: the last iteration that remains valid, when it is not the end of the log. */
export function engineText(head: Head, { profile, from }: EngineChange, redone: number | undefined): string {
  const until = redone ?? adoptableUntil(head);
  const again =
    until > from
      ? ` and applies the batches of ${until === from + 1 ? `iteration ${until}` : `iterations ${from + 1} to ${until}`} again`
      : '';
  const why =
    named(head.profile) === named(profile)
      ? `no trainer here computes with the profile ${shown(head.profile)}, only with ${shown(profile)}`
      : `${named(profile)} in place of ${named(head.profile)}`;
  return `${why}: the run continues after iteration ${from} in a new term${again}`;
}
