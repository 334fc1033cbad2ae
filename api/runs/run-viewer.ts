/**
 * Views a run through its feed: the control process that drives it says what is new. Where none answers (the stack is
 * down, another stack drives the run, the process is silent), looks at the store. Each news is taken once, in order.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/nats-core';
import { takeNews } from '../../core/run-feed.ts';
import type { FeedPlace, News, TakenNews } from '../../core/run-feed.ts';
import { feedAnswer, feedAskSubject, feedNews, feedSubject } from '../../core/wire/feed.ts';
import { liveNote, liveSubject, wireVersion } from '../../core/wire/messages.ts';
import type { LiveMessage } from '../../core/wire/messages.ts';
import { readMessage } from '../../infra/nats/incoming.ts';
import { readStack } from '../../infra/stack/index.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { newsSince } from '../../log/run/run-news.ts';

/** A viewer asks again after this time, in case that a message was lost. */
const askMs = 1_000;
/** A question without an answer for this long: the feed is silent. Where nobody listens, the server says so at once. */
const answerMs = 5_000;
/** The first look at a run waits this long for the feed. */
const firstMs = 1_000;
/** After this many looks, it checks whether the stack went down or came up again elsewhere. */
const looksPerStack = 10;

export interface ViewerPorts {
  /** Called with all that is new, in order. */
  readonly take: (news: TakenNews) => void;
  /** What the control process is doing now: lossy, and of no run's history. */
  readonly note?: (note: LiveMessage) => void;
  readonly stackIs?: (state: 'up' | 'down') => void;
}

export interface ViewerStart {
  readonly place: FeedPlace;
  /** Newest iterations that are read from the store when more are new. */
  readonly most: number;
}

export class RunViewer {
  readonly #log: RunLog;
  readonly #home: string | undefined;
  readonly #ports: ViewerPorts;
  readonly #most: number;
  #place: FeedPlace;
  #connection: { readonly url: string; readonly nc: Promise<NatsConnection | undefined> } | undefined;
  #connected: NatsConnection | undefined;
  #asking: Promise<void> | undefined;
  /** An error while news was taken; the next look throws it. */
  #failure: { readonly error: unknown } | undefined;
  #askedMs = Number.NEGATIVE_INFINITY;
  #isAnswered = false;
  #looks = 0;

  /** `home`: of the stack that may drive the run. Without it only the store is read. */
  constructor(log: RunLog, home: string | undefined, { place, most }: ViewerStart, ports: ViewerPorts) {
    this.#log = log;
    this.#home = home;
    this.#most = most;
    this.#place = place;
    this.#ports = ports;
  }

  /** The connection, once it is open. */
  get connected(): NatsConnection | undefined {
    return this.#connected;
  }

  /** Call this a few times a second: it reads the store when no feed speaks for the run. */
  async look(): Promise<void> {
    if (this.#looks++ % looksPerStack === 0) {
      const state = this.#connect();
      this.#ports.stackIs?.(state);
    }
    const isFirst = this.#looks === 1;
    if (isFirst) await Promise.race([this.#connection?.nc, delay(firstMs, undefined, { ref: false })]);
    if (this.#connected !== undefined && performance.now() - this.#askedMs > askMs) {
      const asking = this.#ask(this.#connected);
      if (isFirst) await Promise.race([asking, delay(firstMs, undefined, { ref: false })]);
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    if (!this.#isAnswered) await this.readStore();
  }

  /** Reads what is new from the store, whether a feed speaks or not. */
  async readStore(): Promise<void> {
    const { news } = await newsSince(this.#log, this.#place, this.#most);
    this.#take(news, true);
  }

  async close(): Promise<void> {
    const before = this.#connection;
    this.#connection = undefined;
    this.#connected = undefined;
    this.#isAnswered = false;
    await (await before?.nc)?.close();
  }

  /** Connects to the running stack when it is another one than before. */
  #connect(): 'up' | 'down' {
    const stack = this.#home === undefined ? undefined : readStack(this.#home);
    if (stack === undefined) {
      if (this.#connection !== undefined) void this.close();
      return 'down';
    }
    if (this.#connection?.url === stack.nats.url) return 'up';
    void this.close();
    this.#connection = { url: stack.nats.url, nc: this.#open(stack) };
    return 'up';
  }

  /** Undefined when the server does not answer. The next look tries again. */
  async #open(stack: StackInfo): Promise<NatsConnection | undefined> {
    const { connectNats } = await import('../../infra/nats/connection.ts');
    const nc = await connectNats(stack, 'follow').catch(() => undefined);
    if (nc === undefined) {
      this.#connection = undefined;
      return undefined;
    }
    const { runId } = this.#log;
    this.#listen(nc, liveSubject(runId), (message) => {
      const note = readMessage(message, liveNote);
      if (note !== undefined) this.#ports.note?.(note);
    });
    this.#listen(nc, feedSubject(runId), (message) => {
      const news = readMessage(message, feedNews);
      if (news !== undefined && this.#isAnswered && !this.#take(news)) void this.#ask(nc);
    });
    if (this.#connection?.url === stack.nats.url) this.#connected = nc;
    return nc;
  }

  #listen(nc: NatsConnection, subject: string, take: (message: { string(): string }) => void): void {
    nc.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) take(message);
      },
    });
  }

  /** Asks for what is new since this viewer's place. One question at a time. */
  #ask(nc: NatsConnection): Promise<void> {
    this.#asking ??= this.#askOnce(nc)
      .catch((error: unknown) => {
        this.#isAnswered = false;
        this.#failure ??= { error };
      })
      .finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #askOnce(nc: NatsConnection): Promise<void> {
    this.#askedMs = performance.now();
    const ask = { v: wireVersion, store: this.#log.store.url, place: this.#place };
    const reply = await nc
      .request(feedAskSubject(this.#log.runId), JSON.stringify(ask), { timeout: answerMs })
      .catch(() => undefined); // nobody drives the run here, or its process is silent
    const answer = reply && readMessage(reply, feedAnswer);
    this.#isAnswered = answer !== undefined && answer.answer !== 'unknown' && nc === this.#connected;
    if (answer?.answer === 'older') await this.readStore();
    if (answer?.answer === 'news' && this.#isAnswered) this.#take(answer.news);
  }

  /** False when something before this message is missing. */
  #take(news: News, isOwn = false): boolean {
    const taken = takeNews(this.#place, news, isOwn);
    this.#place = taken.place;
    this.#ports.take(taken);
    return taken.isComplete;
  }
}
