/** The workers whose presence is current, as the waiters of jobs see them. */
import type { NatsConnection } from '@nats-io/nats-core';
import { meets } from '../../../core/machine-needs.ts';
import type { MachineNeeds } from '../../../core/machine-needs.ts';
import type { Role } from '../../../core/roles.ts';
import { machineOf, poolOfInstance } from '../../../core/wire/join.ts';
import { presenceKey, timingAt } from '../../../core/wire/messages.ts';
import type { Presence, Timing } from '../../../core/wire/messages.ts';
import { identityText, placeWords, shownName } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity, WorkerPlace } from '../../../core/wire/worker-identity.ts';
import { alsoTraining, mayTrain, scorerFor, scoringAhead, trainerFor } from './choices.ts';
import type { Choice, TrainerJob } from './choices.ts';
import { watchPresence } from './presence.ts';

/** Longest outage after which workers are taken for present. */
const outageMs = 60_000;

const takesJobs: ReadonlySet<Presence['state']> = new Set(['ready', 'busy']);

/** Does another run wait for this trainer, which works for the given run? */
const wants = ({ lease, wanted }: Presence, runId: string): boolean => lease === runId && wanted === true;

export class Workers {
  readonly #known = new Map<string, { readonly entry: Presence; readonly heard: number }>();
  readonly #timing: Timing;
  /** Free trainers that were offered a job. */
  readonly #reserved = new Set<string>();
  readonly #instance: string;
  /** Jobs that wait until another run wants the trainer of a run. */
  readonly #turns = new Set<{ readonly runId: string; readonly over: () => void }>();

  /**
   * `instance`: of this process. `came`: a new process announced itself, perhaps in place of one that held jobs;
   * `before` is that one's last entry.
   */
  constructor(
    nc: NatsConnection,
    instance: string,
    timing: Timing,
    came: (entry: Presence, before: Presence | undefined) => void,
  ) {
    this.#instance = instance;
    this.#timing = timing;
    watchPresence(nc, (entry) => {
      const place = placeWords(entry);
      const before = this.#known.get(place)?.entry;
      this.#known.set(place, { entry, heard: Date.now() });
      if (before?.incarnation !== entry.incarnation) came(entry, before);
      for (const { runId, over } of this.#turns) if (wants(entry, runId)) over();
    });
  }

  /** Workers that were there before this process listened. */
  seed(entries: readonly Presence[]): void {
    for (const entry of entries) {
      const place = placeWords(entry);
      if (!this.#known.has(place)) this.#known.set(place, { entry, heard: Date.now() });
    }
  }

  /**
   * Gives workers time to announce themselves after an outage: nobody could be heard, and these were there shortly
   * before it.
   */
  reconnected(): void {
    const now = Date.now();
    for (const [place, { entry, heard }] of this.#known)
      if (now - heard < outageMs) this.#known.set(place, { entry, heard: now });
  }

  /** All whose presence is current, in the order of their names. */
  list(): Presence[] {
    return this.#current().sort((a, b) => (presenceKey(a) < presenceKey(b) ? -1 : 1));
  }

  /** How patient the control process is with this worker. */
  timingOf(place: WorkerPlace): Timing {
    return timingAt(this.#timing, this.#known.get(placeWords(place))?.entry.roundTripMs);
  }

  /** Round trips of the workers that take jobs of this queue and meet its needs, ms. */
  roundTrips(role: Role, queue: string, needs: MachineNeeds = {}): number[] {
    return this.#taking(role)
      .filter((entry) => entry.profiles.includes(queue) && meets(needs, machineOf(entry)))
      .map(({ roundTripMs = 0 }) => roundTripMs);
  }

  /** URL at which the weights of a process are served; undefined when it does not serve them. */
  servesAt({ incarnation, ...place }: WorkerIdentity): string | undefined {
    const entry = this.#known.get(placeWords(place))?.entry;
    return entry?.incarnation === incarnation ? entry.serves : undefined;
  }

  /** URL at which the trainer that leads the run serves its policy. */
  trainerOf(runId: string): string | undefined {
    return this.#present('trainer').find(
      ({ lease, standsBy, trains }) =>
        lease === runId && standsBy !== true && (trains === undefined || trains.includes('actor')),
    )?.serves;
  }

  /** URLs at which the processes that can sample with this profile serve weights. */
  samplers(profile: string): string[] {
    return this.#present('rollout')
      .filter(({ state, profiles }) => takesJobs.has(state) && profiles.includes(profile))
      .flatMap(({ serves }) => (serves === undefined ? [] : [serves]));
  }

  /** Does another run wait for the trainer of this one? */
  isWanted(runId: string): boolean {
    return this.#present('trainer').some((entry) => wants(entry, runId));
  }

  /** Resolves once another run waits for the trainer of this one: true. Or once the signal is aborted: false. */
  async untilWanted(runId: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted || this.isWanted(runId)) return !signal.aborted;
    return new Promise((resolve) => {
      const end = (wanted: boolean) => {
        this.#turns.delete(turn);
        signal.removeEventListener('abort', aborted);
        resolve(wanted);
      };
      const turn = { runId, over: () => end(true) };
      const aborted = () => end(false);
      this.#turns.add(turn);
      signal.addEventListener('abort', aborted, { once: true });
    });
  }

  /** This process of a worker is gone: its last entry; undefined when another process has taken its place. */
  forget({ incarnation, ...place }: WorkerIdentity): Presence | undefined {
    const entry = this.#known.get(placeWords(place))?.entry;
    if (entry?.incarnation !== incarnation) return undefined;
    this.#known.delete(placeWords(place));
    return entry;
  }

  /** `name: what it lacks`, for workers of this role that refuse some or all jobs. */
  lacking(role: Role): string[] {
    return this.#present(role).flatMap((entry) =>
      (entry.lacks ?? []).slice(0, 1).map(({ error }) => `${shownName(entry, this.#instance)}: ${error.message}`),
    );
  }

  /** The trainer for a job, of those that have not declined it. */
  trainerFor(job: TrainerJob, declined: ReadonlySet<string>, needs: MachineNeeds = {}): Choice | undefined {
    const present = this.#taking('trainer', declined).filter((entry) => meets(needs, machineOf(entry)));
    return trainerFor(
      job,
      present.filter((entry) => entry.lease !== undefined || !this.#reserved.has(identityText(entry))),
    );
  }

  /** A free trainer was offered a job: for a while it is offered no job of another run. */
  reserve(trainer: WorkerIdentity): void {
    const name = identityText(trainer);
    this.#reserved.add(name);
    setTimeout(() => this.#reserved.delete(name), this.timingOf(trainer).claimMs).unref();
  }

  /**
   * Has the machine of this worker what a job needs? Until it has announced itself, its GPUs are believed, and its pool
   * if it is the control machine.
   */
  meets(needs: MachineNeeds, place: WorkerPlace): boolean {
    const entry = this.#known.get(placeWords(place))?.entry;
    if (entry !== undefined) return meets(needs, machineOf(entry));
    const pool = poolOfInstance(place.instance);
    return pool === place.instance || needs.pools === undefined || needs.pools.includes(pool);
  }

  mayTrain(job: TrainerJob, place: WorkerPlace): boolean {
    const entry = this.#known.get(placeWords(place))?.entry;
    return entry === undefined || mayTrain(job, entry);
  }

  /**
   * The trainer has claimed a job of the run, which its next presence says too. Must others be told? Either it takes
   * the lease now, for which it may have waited elsewhere too, or another one has it as well.
   */
  takesLease(job: TrainerJob, { incarnation, ...place }: WorkerIdentity): boolean {
    const known = this.#known.get(placeWords(place));
    if (known?.entry.incarnation !== incarnation) return true;
    const { entry, heard } = known;
    const others = alsoTraining(job, placeWords(place), this.#present('trainer'));
    const trains = entry.lease === job.runId ? [...(entry.trains ?? []), ...(job.components ?? [])] : job.components;
    const { standsBy: _, trains: __, ...rest } = entry;
    const leased: Presence = {
      ...rest,
      lease: job.runId,
      ...(trains !== undefined && trains.length > 0 && { trains: [...new Set(trains)] }),
      ...(job.standby && { standsBy: true as const }),
    };
    this.#known.set(placeWords(place), { entry: leased, heard });
    return entry.lease !== job.runId || others.length > 0;
  }

  /** The worker that scores the samples of this rollout job ahead: one within this round trip, if there is any. */
  scorerFor(rolloutJob: string, within = Number.POSITIVE_INFINITY): WorkerIdentity | undefined {
    const scorers = this.#taking('reward');
    const near = scorers.filter(({ roundTripMs = 0 }) => roundTripMs <= within);
    return scorerFor(rolloutJob, near.length > 0 ? near : scorers);
  }

  /** The worker that has samples of this rollout job. */
  scoringAhead(rolloutJob: string, declined?: ReadonlySet<string>): Choice | undefined {
    const to = scoringAhead(rolloutJob, this.#taking('reward', declined));
    return to && { to, only: true };
  }

  /** Does this process take jobs, as far as is known? */
  isPresent(worker: WorkerIdentity): boolean {
    const known = this.#known.get(placeWords(worker));
    return (
      known?.entry.incarnation === worker.incarnation && takesJobs.has(known.entry.state) && this.#isCurrent(known)
    );
  }

  #taking(role: Role, declined?: ReadonlySet<string>): Presence[] {
    return this.#present(role).filter(
      (entry) => takesJobs.has(entry.state) && declined?.has(identityText(entry)) !== true,
    );
  }

  #current(): Presence[] {
    return [...this.#known.values()].filter((known) => this.#isCurrent(known)).map(({ entry }) => entry);
  }

  #isCurrent({ entry, heard }: { readonly entry: Presence; readonly heard: number }): boolean {
    return Date.now() - heard < timingAt(this.#timing, entry.roundTripMs).presenceMs;
  }

  #present(role: Role): Presence[] {
    return this.#current().filter((entry) => entry.roles.includes(role));
  }

  /** Is there a healthy worker of this queue whose name is not in the set? */
  others(role: Role, queue: string, than: ReadonlySet<string>): boolean {
    return this.#present(role).some(
      (entry) =>
        !than.has(shownName(entry, this.#instance)) && takesJobs.has(entry.state) && entry.profiles.includes(queue),
    );
  }
}
