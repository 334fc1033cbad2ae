/**
 * A worker's side of permits. It renews those in use, and ends a request whose permit could not be renewed in time,
 * because the control process may have given it to another worker.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/nats-core';
import type { EndpointLimits } from '../../../core/endpoint.ts';
import { errorToJson, RetryableError } from '../../../core/errors.ts';
import type { RunId } from '../../../core/ids.ts';
import type { Permit, PermitOutcome, Permits } from '../../../core/ports/permits.ts';
import { wireVersion } from '../../../core/wire/messages.ts';
import { permitReply, permitSubject, permitTiming } from '../../../core/wire/permits.ts';
import type { PermitMessage, PermitReply, PermitTiming } from '../../../core/wire/permits.ts';
import type { WorkerPlace } from '../../../core/wire/worker-identity.ts';
import { readMessage } from '../incoming.ts';

interface Held {
  readonly tokens: number;
  readonly since: number;
  readonly lost: AbortController;
  leaseUntil: number;
}

/** Pause after a request that nobody answered. */
const againMs = 250;

export class PermitHolder implements Permits {
  readonly #nc: NatsConnection;
  readonly #subject: string;
  readonly #limits: EndpointLimits;
  readonly #timing: PermitTiming;
  readonly #name = randomBytes(6).toString('hex');
  readonly #held = new Map<string, Held>();
  #renewing: NodeJS.Timeout | undefined;
  #count = 0;
  /** Time of the last renewal of the permits in use. */
  #askedAt = -Infinity;

  constructor(
    nc: NatsConnection,
    { runId, from }: { readonly runId: RunId; readonly from: WorkerPlace },
    limits: EndpointLimits,
    timing: PermitTiming = permitTiming,
  ) {
    this.#nc = nc;
    this.#subject = permitSubject(runId, from);
    this.#limits = limits;
    this.#timing = timing;
  }

  async acquire(tokens: number, signal: AbortSignal): Promise<Permit> {
    const id = `${this.#name}-${++this.#count}`;
    let heardAt = performance.now();
    for (;;) {
      signal.throwIfAborted();
      const sentAt = performance.now();
      const reply = await this.#untilAborted(this.#request({ ask: { id, tokens } }, this.#timing.pollMs), signal, id);
      if (reply instanceof Error) {
        if (performance.now() - heardAt > this.#timing.silenceMs) throw silent(reply, this.#timing);
        await sleep(againMs, undefined, { signal });
        continue;
      }
      heardAt = performance.now();
      if (reply.go) return this.#taken(id, tokens, endOfLease(sentAt, reply));
    }
  }

  #taken(id: string, tokens: number, leaseUntil: number): Permit {
    const held: Held = { tokens, since: performance.now(), lost: new AbortController(), leaseUntil };
    this.#held.set(id, held);
    this.#renewing ??= setInterval(() => this.#tick(), this.#timing.leaseMs / 12);
    return { signal: held.lost.signal, release: (outcome) => this.#release(id, outcome) };
  }

  #release(id: string, outcome: PermitOutcome = {}): void {
    if (!this.#held.delete(id)) return;
    this.#giveBack(id, outcome);
    if (this.#held.size > 0) return;
    clearInterval(this.#renewing);
    this.#renewing = undefined;
  }

  /** Lost, it costs a lease. */
  #giveBack(id: string, { tokens, holdMs }: PermitOutcome): void {
    if (this.#nc.isClosed()) return;
    const done = { id, ...(tokens !== undefined && { tokens }), ...(holdMs !== undefined && { holdMs }) };
    this.#nc.publish(this.#subject, this.#message({ done: [done] }));
  }

  #tick(): void {
    const now = performance.now();
    for (const [id, { leaseUntil, lost }] of this.#held)
      if (leaseUntil <= now) {
        this.#held.delete(id);
        lost.abort(new RetryableError('PermitLost', 'the permit of a request was not renewed in time'));
      }
    if (this.#held.size === 0 || now - this.#askedAt < this.#timing.leaseMs / 4) return;
    this.#askedAt = now;
    void this.#renew();
  }

  async #renew(): Promise<void> {
    const sentAt = performance.now();
    const sent = [...this.#held];
    const held = sent.map(([id, { tokens, since }]) => ({ id, tokens, ageMs: Math.max(0, sentAt - since) }));
    const reply = await this.#request({ held }, this.#timing.leaseMs / 4);
    if (reply instanceof Error) return;
    for (const [, one] of sent) one.leaseUntil = Math.max(one.leaseUntil, endOfLease(sentAt, reply));
  }

  /** An error instead of a reply when none came: the caller decides what that means. */
  async #request(content: Omit<PermitMessage, 'v' | 'limits'>, waitMs: number): Promise<PermitReply | Error> {
    try {
      const options = { timeout: waitMs + 1_000 };
      const answer = await this.#nc.request(this.#subject, this.#message(content), options);
      return readMessage(answer, permitReply) ?? new Error('it answered something else');
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #message(content: Omit<PermitMessage, 'v' | 'limits'>): string {
    return JSON.stringify({ v: wireVersion, limits: this.#limits, ...content });
  }

  /** Waits for the reply until the signal aborts; a permit that is given all the same is given back. */
  async #untilAborted(
    reply: Promise<PermitReply | Error>,
    signal: AbortSignal,
    id: string,
  ): Promise<PermitReply | Error> {
    let giveUp = () => {};
    const aborted = new Promise<never>((_, reject) => {
      giveUp = () => reject(signal.reason);
    });
    signal.addEventListener('abort', giveUp);
    try {
      return await Promise.race([reply, aborted]);
    } catch (error) {
      this.#giveBack(id, {});
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }
}

/** The control process counts from later on, and to the whole lease. */
const endOfLease = (sentAt: number, { leaseMs }: PermitReply): number => sentAt + 0.75 * leaseMs;

function silent(cause: Error, { silenceMs }: PermitTiming): RetryableError {
  return new RetryableError(
    'NoPermits',
    `the control process gave no answer about the limits of reward.endpoint for ${silenceMs / 1000} s: ${errorToJson(cause).message}`,
    { cause },
  );
}
