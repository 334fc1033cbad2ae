/**
 * The feeds of the runs that this stack drives, in its control process. A feed begins when somebody asks for it, and
 * looks at the store when its own process has committed something: one look for all viewers.
 */
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { errorToJson } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import { FeedBook, isNoNews, keptNews } from '../../core/run-feed.ts';
import type { FeedPlace, News } from '../../core/run-feed.ts';
import { feedAsk, feedAsksSubject, feedSubject } from '../../core/wire/feed.ts';
import { wireVersion } from '../../core/wire/messages.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { newsSince } from '../../log/run/run-news.ts';
import { readMessage } from './incoming.ts';

/** What another process may have written (a command, another control process) is noticed after this time. */
const lookMs = 2_000;
/** A feed without a question for this long publishes nothing, and is dropped. */
const quietMs = 30_000;
/** One queue for all control processes of a stack: one of them answers. */
const queue = 'feeds';

export interface RunFeedsPorts {
  /** The log of a run that this stack drives, with a cache of its own; undefined for another run. */
  readonly openLog: (run: { readonly runId: RunId; readonly store: string }) => Promise<RunLog | undefined>;
  readonly log: (line: string) => void;
  /** Milliseconds. */
  readonly now: () => number;
}

export class RunFeeds {
  readonly #nc: NatsConnection;
  readonly #ports: RunFeedsPorts;
  readonly #feeds = new Map<string, Feed>();

  constructor(nc: NatsConnection, ports: RunFeedsPorts) {
    this.#nc = nc;
    this.#ports = ports;
  }

  open(): this {
    this.#nc.subscribe(feedAsksSubject, {
      queue,
      callback: (error, message) => {
        if (error === null) void this.#answer(message);
      },
    });
    return this;
  }

  /** This process has written to the log of a run. Publishes what is new when somebody listens. */
  async changed({ runId, store }: Pick<RunLog, 'runId' | 'store'>): Promise<void> {
    this.#dropQuiet();
    const feed = this.#feeds.get(idOf(runId, store.url));
    if (feed === undefined) return;
    try {
      for (const news of await feed.look())
        if (!this.#nc.isClosed()) this.#nc.publish(feedSubject(runId), JSON.stringify({ v: wireVersion, ...news }));
    } catch (error) {
      // Viewers ask again, and read the store when nobody answers.
      this.#ports.log(`${runId}: its feed could not read the store: ${errorToJson(error).message}`);
    }
  }

  async #answer(message: Msg): Promise<void> {
    const runId = message.subject.split('.').at(-1) ?? '';
    const ask = readMessage(message, feedAsk);
    if (ask === undefined) return;
    try {
      const feed = await this.#feedOf(runId, ask.store);
      const answer = feed === undefined ? 'unknown' : await feed.since(ask.place);
      this.#respond(
        message,
        typeof answer === 'string' ? { v: wireVersion, answer } : { v: wireVersion, answer: 'news', news: answer },
      );
    } catch (error) {
      this.#ports.log(`${runId}: a question for its feed was not answered: ${errorToJson(error).message}`);
      this.#respond(message, { v: wireVersion, answer: 'unknown' });
    }
  }

  #respond(message: Msg, answer: object): void {
    if (!this.#nc.isClosed()) message.respond(JSON.stringify(answer));
  }

  async #feedOf(runId: RunId, store: string): Promise<Feed | undefined> {
    this.#dropQuiet();
    const known = this.#feeds.get(idOf(runId, store));
    if (known !== undefined) return known;
    const log = await this.#ports.openLog({ runId, store });
    if (log === undefined) return undefined;
    const feed = this.#feeds.get(idOf(runId, store)) ?? new Feed(log, this.#ports.now);
    this.#feeds.set(idOf(runId, store), feed);
    return feed;
  }

  #dropQuiet(): void {
    const now = this.#ports.now();
    for (const [id, feed] of this.#feeds) if (now - feed.askedMs > quietMs) this.#feeds.delete(id);
  }
}

const idOf = (runId: RunId, store: string): string => `${runId} ${store}`;

/** The book of one run, and its looks at the store, one after the other. */
class Feed {
  readonly #log: RunLog;
  readonly #book = new FeedBook();
  readonly #now: () => number;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Looks that have been asked for and have not ended. */
  #looking = 0;
  #last: Promise<unknown> = Promise.resolve();
  askedMs: number;

  constructor(log: RunLog, now: () => number) {
    this.#log = log;
    this.#now = now;
    this.askedMs = now();
  }

  /** News since the last look; none before the first question. */
  look(): Promise<News[]> {
    this.#looking += 1;
    const looking = this.#last
      .then(async () => {
        const { news, terms } = await newsSince(this.#log, this.#book.place, keptNews);
        this.#book.take(news, terms);
        return isNoNews(news) ? [] : [news];
      })
      .finally(() => {
        this.#looking -= 1;
        this.#lookedMs = this.#now();
      });
    this.#last = looking.catch(() => undefined);
    return looking;
  }

  async since(place: FeedPlace): Promise<News | 'older'> {
    this.askedMs = this.#now();
    // Many viewers may ask at once, after this process was paused: they share one look.
    if (this.#looking === 0 && this.#now() - this.#lookedMs > lookMs) await this.look();
    else await this.#last;
    const answer = this.#book.since(place);
    if (answer !== 'ahead') return answer;
    await this.look();
    const again = this.#book.since(place);
    return again === 'ahead' ? 'older' : again;
  }
}
