/** The workers that have told of themselves lately, as the waiters of jobs see them. */
import type { NatsConnection } from '@nats-io/nats-core';
import type { Role } from '../../core/wire/jobs.ts';
import type { Presence, Timing } from '../../core/wire/messages.ts';
import { watchPresence } from './presence.ts';

export class Workers {
  readonly #known = new Map<string, { readonly entry: Presence; readonly heard: number }>();
  readonly #timing: Timing;

  /** `came`: a process is there that was not, perhaps in the place of one that held jobs: `before` is what that said last. */
  constructor(nc: NatsConnection, timing: Timing, came: (entry: Presence, before: Presence | undefined) => void) {
    this.#timing = timing;
    watchPresence(nc, (entry) => {
      const before = this.#known.get(entry.worker)?.entry;
      this.#known.set(entry.worker, { entry, heard: Date.now() });
      if (before?.incarnation !== entry.incarnation) came(entry, before);
    });
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
