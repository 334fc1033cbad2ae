/** The needs of the jobs that this process has been asked for: workers that meet them read their queues. */
import type { NatsConnection } from '@nats-io/nats-core';
import { needsWord } from '../../../core/machine-needs.ts';
import type { MachineNeeds } from '../../../core/machine-needs.ts';
import { wantedNeedsSubject } from '../../../core/wire/declarations.ts';
import { wireVersion } from '../../../core/wire/messages.ts';

/** More than the runs of a stack have. */
const mostNeeds = 64;

export class KnownNeeds {
  readonly #nc: NatsConnection;
  /** Maps their word to them; the oldest is forgotten first. */
  readonly #known = new Map<string, MachineNeeds>();

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  get all(): readonly MachineNeeds[] {
    return [...this.#known.values()];
  }

  /** Tells the workers of needs that are new. A worker that starts later learns them when it asks for its queues. */
  note(needs: MachineNeeds): void {
    const word = needsWord(needs);
    if (word === '' || this.#known.has(word)) return;
    this.#known.set(word, needs);
    const [oldest] = this.#known.keys();
    if (this.#known.size > mostNeeds && oldest !== undefined) this.#known.delete(oldest);
    this.tell();
  }

  /** Tells them all: a message may have been lost. */
  tell(): void {
    if (this.#known.size === 0) return;
    this.#nc.publish(wantedNeedsSubject, JSON.stringify({ v: wireVersion, needs: this.all }));
  }
}
