/**
 * The permits of one run, as a class without clock and I/O. Asks are answered in their order. A minute is a sliding
 * window, so no 60 s see more requests than the limit. A permit that its holder does not renew is free again.
 */
import type { EndpointLimits } from '../../../core/endpoint.ts';
import type { PermitTiming } from '../../../core/wire/permits.ts';

interface Given {
  readonly tokens: number;
  expiresAt: number;
}

interface Waiting {
  readonly id: string;
  readonly tokens: number;
}

/** A request of the last minute. */
interface Start {
  readonly id: string;
  readonly at: number;
  tokens: number;
}

export class RunPermits {
  readonly #timing: PermitTiming;
  #limits: EndpointLimits;
  readonly #given = new Map<string, Given>();
  #starts: Start[] = [];
  #waiting: Waiting[] = [];
  /** Time before which nothing is given. */
  #closedUntil: number;
  #usedAt: number;

  /**
   * `usedAt`: when a control process before this one last gave or renewed a permit of the run. Its requests count as a
   * full minute, and for one lease nothing is given, because permits that are still in use are renewed in that time.
   */
  constructor(limits: EndpointLimits, timing: PermitTiming, now: number, usedAt?: number) {
    this.#timing = timing;
    this.#limits = limits;
    this.#usedAt = now;
    this.#closedUntil = usedAt === undefined ? now : this.#afterPredecessor(usedAt, now);
  }

  #afterPredecessor(usedAt: number, now: number): number {
    const { rpm, tpm } = this.#limits;
    const { leaseMs, minuteMs } = this.#timing;
    const rated = rpm !== undefined || tpm !== undefined;
    return usedAt + minuteMs <= now ? now : Math.max(now + leaseMs, rated ? usedAt + minuteMs : 0);
  }

  get inUse(): number {
    return this.#given.size;
  }

  isGiven(id: string): boolean {
    return this.#given.has(id);
  }

  /** Time of the run's last use of a permit. */
  get usedAt(): number {
    return this.#usedAt;
  }

  limit(limits: EndpointLimits): void {
    this.#limits = limits;
  }

  ask(id: string, tokens: number): void {
    if (!this.#waiting.some((one) => one.id === id) && !this.#given.has(id)) this.#waiting.push({ id, tokens });
  }

  /** Nobody waits for the answer any longer. */
  forget(id: string): void {
    this.#waiting = this.#waiting.filter((one) => one.id !== id);
  }

  /** An unknown permit was given by an earlier control process, or is late: its request runs, so it counts. */
  renew({ id, tokens, ageMs }: { id: string; tokens: number; ageMs: number }, now: number): void {
    this.#usedAt = now;
    const given = this.#given.get(id);
    const expiresAt = now + this.#timing.leaseMs;
    if (given !== undefined) given.expiresAt = expiresAt;
    else {
      this.#given.set(id, { tokens, expiresAt });
      if (!this.#starts.some((start) => start.id === id)) this.#starts.push({ id, at: now - ageMs, tokens });
    }
  }

  /** `tokens`: how many the request had in the end. `holdMs`: the endpoint asked to wait. */
  release(id: string, tokens: number | undefined, holdMs: number | undefined, now: number): void {
    this.forget(id);
    this.#given.delete(id);
    const start = this.#starts.find((one) => one.id === id);
    if (start !== undefined && tokens !== undefined) start.tokens = tokens;
    if (holdMs !== undefined) this.#closedUntil = Math.max(this.#closedUntil, now + holdMs);
  }

  /** Ids of the permits that are given now. */
  give(now: number): string[] {
    this.#expire(now);
    const ids: string[] = [];
    for (let next = this.#waiting[0]; next !== undefined && this.#freeAt(next, now) <= now; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#given.set(next.id, { tokens: next.tokens, expiresAt: now + this.#timing.leaseMs });
      this.#starts.push({ ...next, at: now });
      this.#usedAt = now;
      ids.push(next.id);
    }
    return ids;
  }

  /** Time at which `give` may give more, if nothing else happens; undefined when nobody waits. */
  nextAt(now: number): number | undefined {
    const [next] = this.#waiting;
    if (next === undefined) return undefined;
    const expiries = [...this.#given.values()].map(({ expiresAt }) => expiresAt);
    const free = this.#freeAt(next, now);
    return Math.max(now + 1, Number.isFinite(free) ? free : Math.min(...expiries));
  }

  /** Infinity when a permit must be given back or expire first. */
  #freeAt({ tokens }: Waiting, now: number): number {
    const { concurrent, rpm, tpm } = this.#limits;
    if (this.#given.size >= concurrent) return Infinity;
    const byCount = rpm === undefined ? now : this.#windowFreeAt(rpm, 1, () => 1, now);
    // A request of more tokens than the limit waits for an empty minute, and not for ever.
    const byTokens =
      tpm === undefined ? now : this.#windowFreeAt(tpm, Math.min(tokens, tpm), (start) => start.tokens, now);
    return Math.max(this.#closedUntil, byCount, byTokens);
  }

  /** Time at which enough starts have left the window that `wanted` more fit below `most`. */
  #windowFreeAt(most: number, wanted: number, weight: (start: Start) => number, now: number): number {
    let used = this.#starts.reduce((sum, start) => sum + weight(start), 0);
    if (used + wanted <= most) return now;
    for (const start of this.#starts.toSorted((a, b) => a.at - b.at)) {
      used -= weight(start);
      if (used + wanted <= most) return start.at + this.#timing.minuteMs;
    }
    return now;
  }

  #expire(now: number): void {
    for (const [id, { expiresAt }] of this.#given) if (expiresAt <= now) this.#given.delete(id);
    this.#starts = this.#starts.filter(({ at }) => at + this.#timing.minuteMs > now);
  }
}
