/** A viewer takes everything once and in order, whatever becomes of messages and of the processes that send them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commonPosition, FeedBook, feedStart, isNoNews, keptNews, takeNews, validatedWith } from './run-feed.ts';
import type { FeedIteration, FeedPlace, FeedTerm, FeedValidation, News } from './run-feed.ts';

const none = { metrics: {}, timings: {} };
const iterationOf = (iteration: number, term: number): FeedIteration => ({
  ...{ iteration, term, at: '', given: false },
  ...{ batch: none, update: none },
});

/** A log as the store has it: what is new since a place follows from it alone. */
class Log {
  status = 0;
  terms: FeedTerm[] = [{ term: 1, from: 0 }];
  position = 0;
  /** Validated positions, with the term that validated each. */
  validated: FeedValidation[] = [];

  get term(): number {
    return this.terms[0]?.term ?? 0;
  }

  validate(): void {
    if ((this.validated.at(-1)?.iteration ?? -1) >= this.position) return;
    this.validated.push({ iteration: this.position, term: this.term, accuracy: this.position, ...none });
  }

  /** A new term that continues from an earlier position. */
  goBack(by: number): void {
    const from = Math.max(0, this.position - by);
    this.terms = [{ term: this.term + 1, from }, ...this.terms.filter((one) => one.from < from || one.term === 1)];
    this.validated = this.validated.filter(({ iteration }) => iteration <= from);
    this.position = from;
  }

  holderOf = (k: number): number => this.terms.find(({ from }) => from < k)?.term ?? 1;

  read(from: FeedPlace, most: number): News {
    const common = Math.min(commonPosition(from, this.terms), this.position);
    const base = Math.max(common, this.position - most);
    const validated = validatedWith(from, common);
    const found = this.validated.filter(({ iteration }) => iteration > validated && iteration >= this.position - most);
    const newest = validated < 0 ? this.validated.slice(-1) : [];
    const validations = found.length === 0 ? newest : found;
    return {
      from,
      to: {
        status: this.status,
        term: this.term,
        iteration: this.position,
        validated: validations.at(-1)?.iteration ?? validated,
      },
      base,
      status: this.status > from.status ? { n: this.status, state: 'running' } : undefined,
      owner: 'stack',
      iterations: Array.from({ length: this.position - base }, (_, i) =>
        iterationOf(base + i + 1, this.holderOf(base + i + 1)),
      ),
      validations,
    };
  }
}

/** What a viewer has been given: rows as they would be shown. */
class Shown {
  place: FeedPlace = feedStart;
  status = 0;
  rows: FeedIteration[] = [];
  validations: FeedValidation[] = [];

  /** False when it has to ask. */
  take(news: News): boolean {
    const taken = takeNews(this.place, news);
    const back = taken.wentBackTo ?? Number.POSITIVE_INFINITY;
    this.rows = this.rows.filter(({ iteration }) => iteration <= back);
    this.validations = this.validations.filter(({ iteration }) => iteration < back);
    if (taken.status !== undefined) {
      expect(taken.status.n).toBeGreaterThan(this.status);
      this.status = taken.status.n;
    }
    for (const one of taken.iterations) {
      // Once, and in order.
      expect(one.iteration).toBe((this.rows.at(-1)?.iteration ?? news.base) + 1);
      this.rows.push(one);
    }
    for (const one of taken.validations) {
      expect(one.iteration).toBeGreaterThan(this.validations.at(-1)?.iteration ?? -1);
      this.validations.push(one);
    }
    this.place = taken.place;
    return taken.isComplete;
  }
}

/** The process that drives the run, and what is on the way to the viewer. */
class Driver {
  book = new FeedBook();

  look(log: Log): News | undefined {
    const news = log.read(this.book.place, keptNews);
    this.book.take(news, log.terms);
    return isNoNews(news) ? undefined : news;
  }

  answer(log: Log, place: FeedPlace): News | 'older' {
    const answer = this.book.since(place);
    if (answer !== 'ahead') return answer;
    this.look(log);
    const again = this.book.since(place);
    return again === 'ahead' ? 'older' : again;
  }
}

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('commit' as const), count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('commit' as const), count: fc.constant(keptNews + 9) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom('validate' as const, 'status' as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('back' as const), by: fc.integer({ min: 0, max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('restart' as const) }) },
  { weight: 6, arbitrary: fc.record({ type: fc.constantFrom('look' as const, 'ask' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constantFrom('lose' as const, 'double' as const, 'deliver' as const),
      which: fc.nat(9),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function change(log: Log, done: Step): void {
  if (done.type === 'commit') log.position += done.count;
  else if (done.type === 'validate') log.validate();
  else if (done.type === 'status') log.status++;
  else if (done.type === 'back') log.goBack(done.by);
}

describe('a viewer of a feed', () => {
  it('takes every iteration, validation and state once, with messages lost, doubled and late, and restarts', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const [log, shown] = [new Log(), new Shown()];
        let driver = new Driver();
        let onTheWay: News[] = [];
        const ask = () => {
          const answer = driver.answer(log, shown.place);
          shown.take(answer === 'older' ? log.read(shown.place, Number.POSITIVE_INFINITY) : answer);
        };
        driver.look(log);
        ask();
        for (const done of steps) {
          change(log, done);
          if (done.type === 'restart') driver = new Driver();
          if (done.type === 'look') onTheWay.push(...[driver.look(log)].filter((news) => news !== undefined));
          if (done.type === 'ask') ask();
          if (!('which' in done) || onTheWay.length === 0) continue;
          const at = done.which % onTheWay.length;
          const [message] = onTheWay.slice(at);
          if (done.type !== 'double') onTheWay = onTheWay.filter((_, i) => i !== at);
          if (message !== undefined && done.type !== 'lose' && !shown.take(message)) ask();
        }
        // At the end every message comes once more, late, and one more question is asked.
        for (const message of onTheWay) shown.take(message);
        driver.look(log);
        ask();
        expect(shown.place).toMatchObject({ status: log.status, term: log.term, iteration: log.position });
        expect(shown.status).toBe(log.status);
        const first = shown.rows[0]?.iteration ?? log.position + 1;
        expect(shown.rows).toEqual(
          Array.from({ length: log.position - first + 1 }, (_, i) => iterationOf(first + i, log.holderOf(first + i))),
        );
        expect(shown.validations.map(({ iteration }) => iteration)).toEqual(
          log.validated.map(({ iteration }) => iteration),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it('asks when a message before this one was lost, and not when it comes again', () => {
    const [log, shown, driver] = [new Log(), new Shown(), new Driver()];
    shown.take(log.read(feedStart, keptNews));
    driver.look(log);
    const messages = [1, 2].map(() => {
      log.position++;
      return driver.look(log) as News;
    });
    expect(messages.toReversed().map((message) => shown.take(message))).toEqual([false, true]);
    expect(shown.take(messages[1] as News)).toBe(true);
    expect(shown.take(messages[1] as News)).toBe(true);
    expect(shown.rows.map(({ iteration }) => iteration)).toEqual([1, 2]);
  });
});
