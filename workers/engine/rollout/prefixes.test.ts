import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at } from '../../../core/at.ts';
import { maxTokensPerJournalMessage } from '../../../core/wire/journal.ts';
import { JournalWriter } from './journal-writer.ts';
import type { TokenRun } from '../generation/lineage.ts';
import { readPrefixes } from './prefixes.ts';
import type { ExpectedSamples } from './prefixes.ts';

const identity = { runId: 'run', jobId: 'rollout-1', weights: 'w'.repeat(64), arithmetic: 'det-1' };
const expected: ExpectedSamples = {
  identity,
  samples: [7, 9].flatMap((draw) => [1, 2].map((sample) => ({ draw, sample }))),
  vocab: 100,
  maxNewTokens: 300,
  stopTokens: Int32Array.of(1),
};
const names = [
  [7, 1],
  [7, 2],
  [9, 1],
  [9, 2],
] as const;

const growing = (runs: readonly TokenRun[]) =>
  runs.map((run, b) => ({ run, ...(expected.samples[b] ?? { draw: 0, sample: 0 }) }));

const empty = (): TokenRun => ({ tokens: [], logProbs: [], samplingLogProbs: [] });

/** The token of this sample at this position, the same for every worker; `twist` makes different ones. */
function grow(run: TokenRun, b: number, count: number, twist = 0): void {
  for (let i = 0; i < count; i++) {
    const t = run.tokens.length;
    run.tokens.push(2 + ((t * 31 + b * 17 + twist) % 98));
    run.logProbs.push(Math.fround(-(t + 1) / (b + 2)));
    run.samplingLogProbs.push(Math.fround(-(t + 1) / (b + 3)));
  }
}

/** The messages of a worker that starts from `from` and then makes this many tokens per tick for each sample. */
function written(
  incarnation: string,
  ticks: readonly number[],
  from = 0,
  twist = 0,
): { texts: string[]; runs: TokenRun[] } {
  const texts: string[] = [];
  const writer = new JournalWriter(identity, {
    incarnation,
    tickMs: 0,
    now: () => 0,
    publish: (text) => texts.push(text),
  });
  const runs = names.map((_, b) => {
    const run = empty();
    grow(run, b, from);
    return run;
  });
  writer.begin(growing(runs));
  for (const count of ticks) {
    runs.forEach((run, b) => grow(run, b, count, twist));
    writer.tick(0);
  }
  return { texts, runs };
}

const truth = written('truth', [300]).runs;
const read = (texts: readonly string[], more: Partial<ExpectedSamples> = {}) =>
  readPrefixes(texts, { ...expected, ...more });
const lengths = (texts: readonly string[]) =>
  names.map(([draw, sample]) => read(texts).of(draw, sample)?.tokens.length ?? 0);

function expectTruth(texts: readonly string[]): void {
  const prefixes = read(texts);
  names.forEach(([draw, sample], b) => {
    const prefix = prefixes.of(draw, sample);
    if (prefix === undefined) return;
    const [whole, length] = [truth[b] ?? empty(), prefix.tokens.length];
    expect(prefix).toEqual({
      tokens: whole.tokens.slice(0, length),
      logProbs: whole.logProbs.slice(0, length),
      samplingLogProbs: whole.samplingLogProbs.slice(0, length),
    });
  });
}

describe('the journal of a job', () => {
  it('returns the written tokens, also over several workers', () => {
    const first = written('a', [10, 10, 5]);
    const second = written('b', [7, 8], 25);
    const texts = [...first.texts, ...second.texts];
    expect(lengths(texts)).toEqual([40, 40, 40, 40]);
    expectTruth(texts);
    expect(read(texts).dropped.size).toBe(0);
  });

  it('is one lineage when a worker that did not see it starts over and makes the same tokens', () => {
    const texts = [...written('a', [10, 10]).texts, ...written('b', [3, 4, 5, 6, 7]).texts];
    expect(lengths(texts)).toEqual([25, 25, 25, 25]);
    expectTruth(texts);
  });

  it('is complete again after entries were lost', () => {
    const texts: string[] = [];
    const writer = new JournalWriter(identity, {
      incarnation: 'a',
      tickMs: 0,
      now: () => 0,
      publish: (text) => texts.push(text),
    });
    const runs = names.map(() => empty());
    writer.begin(growing(runs));
    for (let tick = 0; tick < 4; tick++) {
      runs.forEach((run, b) => grow(run, b, 10));
      if (tick === 2) writer.startOver();
      writer.tick(0);
    }
    expect(lengths(texts.slice(2))).toEqual([40, 40, 40, 40]);
    expectTruth(texts.slice(2));
  });

  it('fits into messages that NATS accepts, whatever is written', () => {
    const texts: string[] = [];
    const many = Array.from({ length: 12_000 }, (_, b) => ({ draw: Math.floor(b / 4), sample: b % 4 }));
    const writer = new JournalWriter(identity, {
      incarnation: 'a',
      tickMs: 0,
      now: () => 0,
      publish: (text) => texts.push(text),
    });
    const runs = Array.from({ length: 12_000 }, (_, b) => {
      const run = empty();
      grow(run, b, b === 0 ? maxTokensPerJournalMessage + 10 : 1);
      return run;
    });
    writer.begin(runs.map((run, b) => ({ run, ...at(many, b) })));
    writer.startOver();
    writer.tick(0);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThan(512 * 1024);
    const prefixes = read(texts, { samples: many, maxNewTokens: 20_000 });
    expect(runs.every((run, b) => prefixes.of(Math.floor(b / 4), b % 4)?.tokens.length === run.tokens.length)).toBe(
      true,
    );
  });

  it('waits a tick between messages, and writes at once when flushed', () => {
    let now = 0;
    const texts: string[] = [];
    const writer = new JournalWriter(identity, {
      incarnation: 'a',
      tickMs: 500,
      now: () => now,
      publish: (text) => texts.push(text),
    });
    const runs = names.map(() => empty());
    writer.begin(growing(runs));
    for (now = 0; now <= 1000; now += 100) {
      runs.forEach((run, b) => grow(run, b, 1));
      writer.tick(0);
    }
    expect(texts).toHaveLength(2);
    writer.flush();
    expect(texts).toHaveLength(2); // nothing new
    runs.forEach((run, b) => grow(run, b, 1));
    writer.flush();
    expect(lengths(texts)).toEqual([12, 12, 12, 12]);
  });
});

describe('a journal entry is rejected', () => {
  it('when the entries before it are missing', () => {
    const { texts } = written('a', [10, 10, 10]);
    expect(lengths([texts[0] ?? '', texts[2] ?? ''])).toEqual([10, 10, 10, 10]);
    expect(read([texts[0] ?? '', texts[2] ?? '']).dropped).toEqual(new Map([['without what comes before', 4]]));
  });

  it('when two workers contradict each other from the start', () => {
    const texts = [...written('a', [10, 10]).texts, ...written('b', [15], 0, 5).texts];
    expect(lengths(texts)).toEqual([0, 0, 0, 0]);
    expect(read(texts).dropped).toEqual(new Map([['forked', 4]]));
  });

  it('when it contradicts a worker that wrote all of its tokens itself', () => {
    const texts = [...written('a', [10, 10]).texts, ...written('forger', [30], 10, 5).texts];
    expect(lengths(texts)).toEqual([20, 20, 20, 20]);
    expectTruth(texts);
  });

  it('when it belongs to other weights, another run, job or arithmetic', () => {
    const { texts } = written('a', [10]);
    for (const other of ['runId', 'jobId', 'weights', 'arithmetic'] as const) {
      const prefixes = read(texts, { identity: { ...identity, [other]: 'another' } });
      expect(names.map(([draw, sample]) => prefixes.of(draw, sample))).toEqual([
        undefined,
        undefined,
        undefined,
        undefined,
      ]);
    }
    expect(read(texts, { identity: { ...identity, arithmetic: 'det-2' } }).dropped).toEqual(
      new Map([['of other arithmetic', 1]]),
    );
  });

  it.each([
    ['a token beyond the vocabulary', (run: TokenRun) => (run.tokens[3] = 100)],
    ['a negative token', (run: TokenRun) => (run.tokens[3] = -1)],
    ['tokens after a stop token', (run: TokenRun) => (run.tokens[3] = 1)],
    ['a log-prob that is no number', (run: TokenRun) => (run.logProbs[3] = Number.NaN)],
    ['an infinite log-prob', (run: TokenRun) => (run.samplingLogProbs[3] = Number.NEGATIVE_INFINITY)],
    ['a probability above 1', (run: TokenRun) => (run.logProbs[3] = 0.1)],
    ['more tokens than a sample may have', (run: TokenRun) => grow(run, 0, 300)],
  ])('when it has %s', (_, spoil) => {
    const texts: string[] = [];
    const writer = new JournalWriter(identity, {
      incarnation: 'a',
      tickMs: 0,
      now: () => 0,
      publish: (text) => texts.push(text),
    });
    const runs = names.map(() => empty());
    writer.begin(growing(runs));
    runs.forEach((run, b) => grow(run, b, 10));
    spoil(runs[0] ?? empty());
    writer.tick(0);
    expect(lengths(texts)).toEqual([0, 10, 10, 10]);
    expect(read(texts).dropped).toEqual(new Map([['impossible', 1]]));
  });

  it('when it continues a sample that ended with a stop token', () => {
    const texts: string[] = [];
    const writer = new JournalWriter(identity, {
      incarnation: 'a',
      tickMs: 0,
      now: () => 0,
      publish: (text) => texts.push(text),
    });
    const runs = names.map(() => empty());
    writer.begin(growing(runs));
    runs.forEach((run, b) => grow(run, b, 10));
    (runs[0] ?? empty()).tokens[9] = 1;
    writer.tick(0);
    expect(lengths(texts)).toEqual([10, 10, 10, 10]);
    runs.forEach((run, b) => grow(run, b, 10));
    writer.tick(0);
    expect(lengths(texts)).toEqual([0, 20, 20, 20]);
  });
});

describe('when messages are lost, reordered or damaged', () => {
  const history = fc.record({
    first: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6 }),
    second: fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 6 }),
    anew: fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 6 }),
  });
  const messagesOf = ({ first, second, anew }: { first: number[]; second: number[]; anew: number[] }) => [
    ...written('a', first).texts,
    ...written(
      'b',
      second,
      first.reduce((sum, n) => sum + n, 0),
    ).texts,
    ...written('c', anew).texts,
  ];

  it('lost, reordered and repeated messages: a sample continues from a true prefix or from nothing', () => {
    fc.assert(
      fc.property(
        history.chain((h) => fc.array(fc.constantFrom(...messagesOf(h)), { maxLength: 30 })),
        (texts) => expectTruth(texts),
      ),
    );
  });

  it('all messages in any order: a sample continues from the longest prefix', () => {
    fc.assert(
      fc.property(
        history.chain((h) =>
          fc.tuple(fc.constant(h), fc.shuffledSubarray(messagesOf(h), { minLength: messagesOf(h).length })),
        ),
        ([h, texts]) => {
          const total = (counts: number[]) => counts.reduce((sum, n) => sum + n, 0);
          expect(lengths(texts)[0]).toBe(Math.max(total(h.first) + total(h.second), total(h.anew)));
        },
      ),
    );
  });

  it('truncated messages and flipped bits: a sample continues from a true prefix or from nothing', () => {
    const damage = fc.record({ at: fc.nat(), bit: fc.integer({ min: 0, max: 6 }), cut: fc.boolean(), which: fc.nat() });
    fc.assert(
      fc.property(history, fc.array(damage, { minLength: 1, maxLength: 4 }), (h, damages) => {
        const texts = messagesOf(h);
        for (const { at, bit, cut, which } of damages) {
          const i = which % texts.length;
          const bytes = Buffer.from(texts[i] ?? '');
          const place = at % Math.max(1, bytes.length);
          bytes[place] = (bytes[place] ?? 0) ^ (1 << bit);
          texts[i] = (cut ? bytes.subarray(0, place) : bytes).toString('latin1');
        }
        expectTruth(texts);
      }),
      { numRuns: 300 },
    );
  });

  it('arbitrary text causes no error', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.json())),
        (texts) => void expect(lengths(texts)).toEqual([0, 0, 0, 0]),
      ),
    );
  });
});
