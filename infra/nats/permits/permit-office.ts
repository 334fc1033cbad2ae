/**
 * The control process's side of permits: answers the asks of every worker, run by run. It notes in a file when a run
 * last used a permit, so that the next control process knows which runs it must not serve at once.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { z } from 'zod';
import { errorToJson } from '../../../core/errors.ts';
import { wireVersion } from '../../../core/wire/messages.ts';
import { permitMessage, permitsSubject, permitTiming } from '../../../core/wire/permits.ts';
import type { PermitMessage, PermitReply, PermitTiming } from '../../../core/wire/permits.ts';
import { readMessage } from '../incoming.ts';
import { RunPermits } from './run-permits.ts';

/** How often the file is written while a run uses permits; what it says is older by at most this. */
const noteEveryMs = 5_000;

/** How long an ask keeps its place after it was answered with no: its worker asks again at once. */
const placeMs = 1_500;

interface Asked {
  /** undefined between two asks. */
  readonly message: Msg | undefined;
  readonly timer: NodeJS.Timeout;
}

interface Desk {
  readonly permits: RunPermits;
  /** Asks without an answer, by id. */
  readonly asked: Map<string, Asked>;
  timer: NodeJS.Timeout | undefined;
  notedAt: number;
}

export interface PermitOfficeOptions {
  /** The file that keeps the times of last use between control processes. */
  readonly file: string;
  readonly timing?: PermitTiming;
  readonly log: (line: string) => void;
}

export class PermitOffice {
  readonly #nc: NatsConnection;
  readonly #options: PermitOfficeOptions;
  readonly #timing: PermitTiming;
  readonly #desks = new Map<string, Desk>();
  /** Wall-clock times of last use before this process, by run. */
  readonly #before: Readonly<Record<string, number>>;

  constructor(nc: NatsConnection, options: PermitOfficeOptions) {
    this.#nc = nc;
    this.#options = options;
    this.#timing = options.timing ?? permitTiming;
    this.#before = timesIn(options.file);
  }

  /** Answers from now on, until the connection is closed. */
  open(): void {
    this.#nc.subscribe(permitsSubject, {
      callback: (error, message) => {
        const content = error === null ? readMessage(message, permitMessage) : undefined;
        const [, runId] = message.subject.split('.');
        if (content !== undefined && runId !== undefined) this.#read(runId, message, content);
      },
    });
  }

  #read(runId: string, message: Msg, { limits, ask, held = [], done = [] }: PermitMessage): void {
    const now = performance.now();
    const desk = this.#desk(runId, limits, now);
    desk.permits.limit(limits);
    for (const one of held) desk.permits.renew(one, now);
    for (const { id, tokens, holdMs } of done) {
      desk.permits.release(id, tokens, holdMs, now);
      this.#answer(desk, id, false);
    }
    if (ask === undefined) respond(message, { v: wireVersion, go: false, leaseMs: this.#timing.leaseMs });
    else {
      // The holder asks again when an answer was lost: only the newest ask is answered.
      this.#answer(desk, ask.id, false);
      desk.asked.set(ask.id, { message, timer: setTimeout(() => this.#turnAway(desk, ask.id), this.#timing.pollMs) });
      if (desk.permits.isGiven(ask.id)) this.#answer(desk, ask.id, true);
      else desk.permits.ask(ask.id, ask.tokens);
    }
    this.#give(runId, desk);
  }

  #desk(runId: string, limits: PermitMessage['limits'], now: number): Desk {
    const known = this.#desks.get(runId);
    if (known !== undefined) return known;
    const before = this.#before[runId];
    const usedAt = before === undefined ? undefined : now - Math.max(0, Date.now() - before - noteEveryMs);
    const permits = new RunPermits(limits, this.#timing, now, usedAt);
    const desk: Desk = { permits, asked: new Map(), timer: undefined, notedAt: -Infinity };
    this.#desks.set(runId, desk);
    return desk;
  }

  #give(runId: string, desk: Desk): void {
    clearTimeout(desk.timer);
    const now = performance.now();
    if (!this.#noted(runId, desk, now)) {
      desk.timer = setTimeout(() => this.#give(runId, desk), 1_000);
      return;
    }
    for (const id of desk.permits.give(now)) this.#answer(desk, id, true);
    const nextAt = desk.permits.nextAt(now);
    desk.timer = nextAt === undefined ? undefined : setTimeout(() => this.#give(runId, desk), nextAt - now);
    this.#forgetOld(now);
  }

  #answer(desk: Desk, id: string, go: boolean): void {
    const asked = desk.asked.get(id);
    if (asked === undefined) return;
    desk.asked.delete(id);
    clearTimeout(asked.timer);
    if (asked.message !== undefined) respond(asked.message, { v: wireVersion, go, leaseMs: this.#timing.leaseMs });
  }

  #turnAway(desk: Desk, id: string): void {
    this.#answer(desk, id, false);
    const timer = setTimeout(() => {
      desk.asked.delete(id);
      desk.permits.forget(id);
    }, placeMs);
    desk.asked.set(id, { message: undefined, timer });
  }

  /**
   * Notes a use before the first permit of the next seconds is given, because a use that is not noted would be unknown
   * after a restart.
   */
  #noted(runId: string, desk: Desk, now: number): boolean {
    if (now - desk.notedAt < noteEveryMs) return true;
    const wall = Date.now();
    const times = [...this.#desks].map(([id, { permits }]) => [id, wall - (now - permits.usedAt)] as const);
    try {
      const text = JSON.stringify({ ...Object.fromEntries(times), [runId]: wall });
      writeFileSync(`${this.#options.file}.tmp`, text, { mode: 0o600 });
      renameSync(`${this.#options.file}.tmp`, this.#options.file);
    } catch (error) {
      this.#options.log(`no permits for requests to endpoints: ${errorToJson(error).message}`);
      return false;
    }
    desk.notedAt = now;
    return true;
  }

  /** Runs that used none for so long that nothing of them counts. */
  #forgetOld(now: number): void {
    for (const [runId, { permits, asked, timer }] of this.#desks)
      if (permits.inUse === 0 && asked.size === 0 && now - permits.usedAt > 2 * this.#timing.minuteMs) {
        clearTimeout(timer);
        this.#desks.delete(runId);
      }
  }
}

function respond(message: Msg, reply: PermitReply): void {
  message.respond(JSON.stringify(reply));
}

/** No file: no run has used a permit. A damaged one says nothing about runs, so they count as unused. */
function timesIn(file: string): Record<string, number> {
  try {
    return z.record(z.string(), z.number()).parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return {};
  }
}
