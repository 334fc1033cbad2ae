/** What a worker knows about the other workers, from their presence messages. */
import type { Presence } from '../core/wire/messages.ts';
import { identityText, placeWords } from '../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';

export class Peers {
  readonly #own: string;
  readonly #maxAgeMs: number;
  readonly #heard = new Map<string, { readonly entry: Presence; readonly at: number }>();

  /** `own`: this worker's incarnation, which is no peer of itself. A peer that is silent for `maxAgeMs` is gone. */
  constructor(own: string, maxAgeMs: number) {
    this.#own = own;
    this.#maxAgeMs = maxAgeMs;
  }

  heard(entry: Presence, now: number): void {
    if (entry.incarnation !== this.#own) this.#heard.set(placeWords(entry), { entry, at: now });
  }

  /** Is there another trainer that works for this run, for one of these components at least, and takes its jobs? */
  trains(runId: string, now: number, components?: readonly string[]): boolean {
    return this.#present(now).some(
      ({ lease, trains, standsBy }) =>
        lease === runId &&
        standsBy !== true &&
        (trains === undefined || components === undefined || components.some((name) => trains.includes(name))),
    );
  }

  /** Does another trainer follow this run as its standby? */
  standsBy(runId: string, now: number): boolean {
    return this.#present(now).some(({ lease, standsBy }) => lease === runId && standsBy === true);
  }

  /** This process of a worker is gone; the next one at its place may have been heard already. */
  gone({ incarnation, ...place }: WorkerIdentity): void {
    const name = placeWords(place);
    if (this.#heard.get(name)?.entry.incarnation === incarnation) this.#heard.delete(name);
  }

  /** Has another worker samples of this rollout job that it scores ahead of their reward job? */
  scoresAhead(rolloutJob: string, now: number): boolean {
    return this.#scorers(now).some(({ ahead }) => ahead?.includes(rolloutJob) === true);
  }

  /** Is this, by its `identityText`, another worker that takes scoring jobs? */
  scores(scorer: string, now: number): boolean {
    return this.#scorers(now).some((entry) => identityText(entry) === scorer);
  }

  /** `identityText` of the worker that should score this rollout job: the one that does already, else any. */
  scorerOf(rolloutJob: string, now: number): string | undefined {
    const scorers = this.#scorers(now);
    const present = scorers.find(({ ahead }) => ahead?.includes(rolloutJob) === true);
    const chosen = present ?? scorers[Number.parseInt(rolloutJob.slice(-4), 16) % scorers.length];
    return chosen && identityText(chosen);
  }

  /** In an order that does not depend on when they were heard. */
  #scorers(now: number): Presence[] {
    return this.#present(now)
      .filter(({ roles }) => roles.includes('reward'))
      .sort((a, b) => (placeWords(a) < placeWords(b) ? -1 : 1));
  }

  /** Is there another trainer that takes jobs of this profile and works for no run? */
  hasFreeTrainer(profile: string, now: number): boolean {
    return this.#present(now).some(
      ({ lease, roles, profiles }) => lease === undefined && roles.includes('trainer') && profiles.includes(profile),
    );
  }

  #present(now: number): Presence[] {
    return [...this.#heard.values()]
      .filter(({ entry, at }) => takesJobs(entry) && now - at < this.#maxAgeMs)
      .map(({ entry }) => entry);
  }
}

const takesJobs = ({ state }: Presence) => state === 'ready' || state === 'busy';
