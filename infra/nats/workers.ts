/** The workers whose presence is current, as the waiters of jobs see them. */
import type { NatsConnection } from '@nats-io/nats-core';
import { anyProfile } from '../../core/records/profile-ids.ts';
import type { Role } from '../../core/roles.ts';
import type { Presence, Timing } from '../../core/wire/messages.ts';
import { placeWords, shownName } from '../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../core/wire/worker-identity.ts';
import { watchPresence } from './presence.ts';

const takesJobs: ReadonlySet<Presence['state']> = new Set(['ready', 'busy']);

/** Does another run wait for this trainer, which works for the given run? */
const wants = ({ lease, wanted }: Presence, runId: string): boolean => lease === runId && wanted === true;

export class Workers {
  readonly #known = new Map<string, { readonly entry: Presence; readonly heard: number }>();
  readonly #timing: Timing;
  readonly #instance: string;
  /** Those that wait until another run wants the trainer of a run. */
  readonly #turns = new Set<{ readonly runId: string; readonly over: () => void }>();

  /**
   * `instance`: of this process. `came`: a new process announced itself, perhaps in place of one that held jobs; `before` is that one's last entry.
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

  /** Where the weights that a process has are served; undefined when it does not serve them. */
  servesAt({ incarnation, ...place }: WorkerIdentity): string | undefined {
    const entry = this.#known.get(placeWords(place))?.entry;
    return entry?.incarnation === incarnation ? entry.serves : undefined;
  }

  /** Where the trainer that leads the run serves its policy. */
  trainerOf(runId: string): string | undefined {
    return this.#present('trainer').find(
      ({ lease, standsBy, trains }) =>
        lease === runId && standsBy !== true && (trains === undefined || trains.includes('actor')),
    )?.serves;
  }

  /** Where the processes that can sample with this profile serve weights. */
  samplers(profile: string): string[] {
    return this.#present('rollout')
      .filter(({ state, profiles }) => takesJobs.has(state) && (profile === anyProfile || profiles.includes(profile)))
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

  /** Name of the standby that leads this run from its next job on; undefined while another trainer leads it. */
  successorOf(runId: string): string | undefined {
    const trainers = this.#present('trainer').filter(({ lease, state }) => lease === runId && takesJobs.has(state));
    if (trainers.some(({ standsBy }) => standsBy !== true)) return undefined;
    const [standby] = trainers;
    return standby && shownName(standby, this.#instance);
  }

  #present(role: Role): Presence[] {
    return [...this.#known.values()]
      .filter(({ entry, heard }) => entry.roles.includes(role) && Date.now() - heard < this.#timing.presenceMs)
      .map(({ entry }) => entry);
  }

  /** Is there a healthy worker with this role and profile whose name is not in the set? */
  others(role: Role, profile: string, than: ReadonlySet<string>): boolean {
    return this.#present(role).some(
      (entry) =>
        !than.has(shownName(entry, this.#instance)) &&
        takesJobs.has(entry.state) &&
        (profile === anyProfile || entry.profiles.includes(profile)),
    );
  }
}
