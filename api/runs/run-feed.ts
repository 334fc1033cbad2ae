/**
 * The feed of a run: all that is new since a reader's place, in order, each once. The control process that drives the
 * run pushes it. Where none answers (the stack is down, another stack drives the run, the process is silent), the feed
 * reads the store. A place means the same to every process, so a reader that comes back goes on where it was.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/nats-core';
import { feedStart, takeNews } from '../../core/run-feed.ts';
import type { FeedPlace, News, TakenNews } from '../../core/run-feed.ts';
import { endedStates } from '../../core/run-states.ts';
import { feedAnswer, feedAskSubject, feedNews, feedSubject } from '../../core/wire/feed.ts';
import { liveNote, liveSubject, wireVersion } from '../../core/wire/messages.ts';
import type { LiveMessage } from '../../core/wire/messages.ts';
import { readMessage } from '../../infra/nats/incoming.ts';
import { readStack } from '../../infra/stack/index.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { newsSince } from '../../log/run/run-news.ts';

/** A reader asks again after this time, in case that a message was lost. */
const askMs = 1_000;
/** A question without an answer for this long: the feed is silent. Where nobody listens, the server says so at once. */
const answerMs = 5_000;
/** The first look at a run waits this long for the feed. */
const firstMs = 1_000;
/** After this many looks, it checks whether the stack went down or came up again elsewhere. */
const looksPerStack = 10;
const defaultLookMs = 500;

export interface FeedOptions {
  /**
   * The reader's place: what lies after it comes. Default: `feedStart`, for a reader that needs the newest iterations
   * only, and then `most` says how many. From `feedWhole` on, every iteration comes.
   */
  readonly from?: FeedPlace;
  /** Newest iterations that are read from the store when more are new. Default: all. */
  readonly most?: number;
  /** Ends the reading. */
  readonly signal: AbortSignal;
  /** Called with what was committed, in order, each once. `place` says where the reader stands then. */
  readonly take: (news: TakenNews) => void;
  /** Called with what the control process is doing now. Such notes may be lost, and are not part of the run's log. */
  readonly note?: (note: LiveMessage) => void;
  /** Called every few seconds: is the stack of this home up? */
  readonly stackIs?: (state: 'up' | 'down') => void;
}

/** What the followers of this package need beside. */
interface FollowerOptions extends FeedOptions {
  /** Called after each look. `nc`: the connection to the stack, once it is open. */
  readonly looked?: (nc: NatsConnection | undefined) => void;
  /** Time between two looks. A message is taken when it comes, and not only then. */
  readonly lookMs?: number;
}

/**
 * Reads a run's feed until the run has ended or the signal comes. Resolves with the place up to which everything was
 * taken: give it as `from` to go on. A run that had ended before the place of `from` may be resumed: the feed waits for
 * that. `home`: of the stack that may drive the run; without it only the store is read. Throws what `take` throws, and
 * errors of the store.
 */
export async function followFeed(
  log: RunLog,
  { home }: { readonly home?: string | undefined },
  options: FollowerOptions,
): Promise<FeedPlace> {
  const reader = new FeedReader(log, home, options);
  try {
    for (;;) {
      await reader.look();
      const hasEnded = reader.hasEnded && (await reader.endsInStore());
      options.looked?.(reader.connected);
      if (hasEnded || options.signal.aborted) return reader.place;
      await nextLook(options.signal, options.lookMs ?? defaultLookMs);
    }
  } finally {
    await reader.close();
  }
}

function nextLook(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done, { once: true });
  });
}

class FeedReader {
  readonly #log: RunLog;
  readonly #home: string | undefined;
  readonly #options: FeedOptions;
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
  #hasEnded = false;

  constructor(log: RunLog, home: string | undefined, options: FeedOptions) {
    this.#log = log;
    this.#home = home;
    this.#options = options;
    this.#most = options.most ?? Number.POSITIVE_INFINITY;
    this.#place = options.from ?? feedStart;
  }

  get place(): FeedPlace {
    return this.#place;
  }

  /** Did the run end, by the newest status after the reader's place? A message says only that it may have. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The connection, once it is open. */
  get connected(): NatsConnection | undefined {
    return this.#connected;
  }

  /** Call this a few times a second: it reads the store when no feed speaks for the run. */
  async look(): Promise<void> {
    if (this.#looks++ % looksPerStack === 0) {
      const state = this.#connect();
      this.#options.stackIs?.(state);
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

  /** Has the run ended, as the store says? Then everything before its end has been taken. */
  async endsInStore(): Promise<boolean> {
    const hasEnded = endedStates.has((await this.#log.status.newest())?.state ?? 'queued');
    await this.readStore();
    return hasEnded && this.#hasEnded;
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
      if (note !== undefined) this.#options.note?.(note);
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

  /** Asks for what is new since the reader's place. One question at a time. */
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
    if (taken.status !== undefined) this.#hasEnded = endedStates.has(taken.status.state);
    this.#options.take(taken);
    return taken.isComplete;
  }
}
