/** The workers that have told of themselves lately, as the waiters of jobs see them. */
import type { NatsConnection } from '@nats-io/nats-core';
import type { Role } from '../../core/wire/jobs.ts';
import type { Presence, Timing } from '../../core/wire/messages.ts';
import { watchPresence } from './presence.ts';

export class Workers {
  readonly #known = new Map<string, { readonly entry: Presence; readonly heard: number }>();
  readonly #timing: Timing;

  constructor(nc: NatsConnection, timing: Timing) {
    this.#timing = timing;
    watchPresence(nc, (entry) => this.#known.set(entry.worker, { entry, heard: Date.now() }));
  }

  /** Is there a healthy worker with this role and profile whose name is not among these? */
  others(role: Role, profile: string, than: ReadonlySet<string>): boolean {
    return [...this.#known.values()].some(
      ({ entry, heard }) =>
        !than.has(entry.worker) &&
        entry.roles.includes(role) &&
        (entry.state === 'ready' || entry.state === 'busy') &&
        (profile === 'any' || entry.profiles.includes(profile)) &&
        Date.now() - heard < this.#timing.presenceMs,
    );
  }
}
