/**
 * Which worker has what a job needs, from the presence of the workers that take jobs. Pure, so that tests can ask it
 * anything.
 */
import type { Presence } from '../../../core/wire/messages.ts';
import { reachOf, reaches } from '../../../core/reach.ts';
import { placeWords } from '../../../core/wire/worker-identity.ts';

/** The worker to which a job is sent. */
export interface Choice {
  readonly to: Presence;
  /** It has the state or the samples of the job: no other one should run it. */
  readonly only: boolean;
}

/** The run, and the part of it, for which a trainer is leased. */
export interface TrainerJob {
  readonly runId: string;
  /** The queue of the workers that can do it. */
  readonly queue: string;
  /** The components of the job, where the run is divided. */
  readonly components?: readonly string[] | undefined;
  /** It is one of the run's standby. */
  readonly standby: boolean;
}

/**
 * The trainer that leads the run, else its standby, else a free one of the nearest. A trainer has a second part of its
 * run only while none is free. undefined: the job waits in the queue.
 */
export function trainerFor(job: TrainerJob, present: readonly Presence[]): Choice | undefined {
  const own = present.filter(({ lease }) => lease === job.runId);
  const standby = own.find(({ standsBy }) => standsBy === true);
  const free = freeTrainer(job, present);
  if (job.standby) return choice(standby, true) ?? choice(free, false);
  const leaders = own.filter(({ standsBy }) => standsBy !== true);
  const leader = leaders.find((entry) => trainsAny(entry, job.components));
  if (leader !== undefined) return choice(leader, true);
  const [ofOtherPart] = leaders;
  if (ofOtherPart !== undefined) return choice(free, true) ?? choice(ofOtherPart, false);
  return choice(standby, true) ?? choice(free, false);
}

/** May this trainer claim the job? A standby is never the trainer that leads. */
export const mayTrain = (job: TrainerJob, { lease, standsBy }: Presence): boolean =>
  !(job.standby && lease === job.runId && standsBy !== true);

/** Other trainers that have what `by` takes with this job. */
export function alsoTraining(job: TrainerJob, by: string, present: readonly Presence[]): Presence[] {
  return present.filter(
    (entry) =>
      placeWords(entry) !== by &&
      entry.lease === job.runId &&
      (entry.standsBy === true) === job.standby &&
      trainsAny(entry, job.components),
  );
}

/**
 * The worker that scores the samples of a rollout job ahead: the one that does already, else always the same while it
 * is present.
 */
export function scorerFor(rolloutJob: string, present: readonly Presence[]): Presence | undefined {
  const scorers = [...present].sort(byPlace);
  return scoringAhead(rolloutJob, scorers) ?? scorers[Number.parseInt(rolloutJob.slice(-4), 16) % scorers.length];
}

/** The worker that has samples of this rollout job, which it scores or has scored. */
export const scoringAhead = (rolloutJob: string, present: readonly Presence[]): Presence | undefined =>
  present.find(({ ahead }) => ahead?.includes(rolloutJob) === true);

function freeTrainer({ runId, queue }: TrainerJob, present: readonly Presence[]): Presence | undefined {
  const all = present.filter(({ lease, profiles }) => lease === undefined && profiles.includes(queue)).sort(byPlace);
  const nearest = reaches.find((reach) => all.some((entry) => reachOf(entry.roundTripMs) === reach));
  const free = all.filter((entry) => reachOf(entry.roundTripMs) === nearest);
  // Runs that start together begin with different ones.
  const first = [...runId].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) >>> 0, 0);
  return free[first % free.length];
}

const trainsAny = ({ trains }: Presence, components: readonly string[] | undefined): boolean =>
  trains === undefined || components === undefined || components.some((name) => trains.includes(name));

const choice = (to: Presence | undefined, only: boolean): Choice | undefined => to && { to, only };

const byPlace = (a: Presence, b: Presence): number => (placeWords(a) < placeWords(b) ? -1 : 1);
