/** The workers whose presence is current, as the waiters of jobs see them. */
import type { NatsConnection } from '@nats-io/nats-core';
import { anyProfile } from '../../core/records/profile-ids.ts';
import type { Role } from '../../core/roles.ts';
import type { Presence, Timing } from '../../core/wire/messages.ts';
import { watchPresence } from './presence.ts';

export class Workers {
  readonly #known = new Map<string, { readonly entry: Presence; readonly heard: number }>();
  readonly #timing: Timing;

  /**
   * `came`: a new process announced itself, perhaps in place of one that held jobs; `before` is that one's last entry.
   */
  constructor(nc: NatsConnection, timing: Timing, came: (entry: Presence, before: Presence | undefined) => void) {
    this.#timing = timing;
    watchPresence(nc, (entry) => {
      const before = this.#known.get(entry.worker)?.entry;
      this.#known.set(entry.worker, { entry, heard: Date.now() });
      if (before?.incarnation !== entry.incarnation) came(entry, before);
    });
  }

  /** `name: what it lacks`, for workers of this role that refuse some or all jobs. */
  lacking(role: Role): string[] {
    return this.#present(role).flatMap(({ worker, lacks = [] }) =>
      lacks.slice(0, 1).map(({ error }) => `${worker}: ${error.message}`),
    );
  }

  #present(role: Role): Presence[] {
    return [...this.#known.values()]
      .filter(({ entry, heard }) => entry.roles.includes(role) && Date.now() - heard < this.#timing.presenceMs)
      .map(({ entry }) => entry);
  }

  /** Is there a healthy worker with this role and profile whose name is not in the set? */
  others(role: Role, profile: string, than: ReadonlySet<string>): boolean {
    return this.#present(role).some(
      ({ worker, state, profiles }) =>
        !than.has(worker) &&
        (state === 'ready' || state === 'busy') &&
        (profile === anyProfile || profiles.includes(profile)),
    );
  }
}
