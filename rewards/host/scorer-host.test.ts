import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import type { ScorerInput } from '../types.ts';
import {
  createScorerHost,
  type ScoreOutcome,
  type ScorerHost,
  type ScorerLimits,
  type ScorerSpec,
} from './scorer-host.ts';

const LIMITS: ScorerLimits = { timeoutMs: 20_000, memoryMb: 96, concurrency: 1 };
/** Limits for calls that hang. The other calls of these tests must finish in this time too, on a busy machine. */
const SHORT: ScorerLimits = { ...LIMITS, timeoutMs: 1_000 };
const TS: ScorerSpec = { type: 'module', path: fixture('trouble.ts'), exportName: 'compute_score' };
const PY: ScorerSpec = { type: 'module', path: fixture('trouble.py'), exportName: 'compute_score' };

const hosts: ScorerHost[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

describe('a scorer host', () => {
  test('scores with built-in scorers, by name and by data source', async () => {
    const named = host({ type: 'builtin', name: 'exact' });
    expect(await named.score([input('a', 'a'), input('a', 'b')])).toEqual([
      good(1, { acc: true }),
      good(0, { acc: false }),
    ]);
    const routed = host({ type: 'builtin' });
    const outcomes = await routed.score([{ ...input('#### 5', '5'), dataSource: 'openai/gsm8k' }, input('x', 'x')]);
    expect(outcomes[0]).toEqual({ ...good(1), columns: { acc: true } });
    expect(outcomes[1]).toMatchObject({
      ok: false,
      code: 'threw',
      reason: expect.stringContaining('no scorer for data_source'),
    });
  });

  test('loads JavaScript and TypeScript modules, by the name given or by default', async () => {
    const js = host({ type: 'module', path: fixture('plain.js'), exportName: 'compute_score' });
    expect(await js.score([{ ...input('abc', ''), extraInfo: { index: 4 } }])).toEqual([good(3, { index: 4 })]);
    expect(await host({ ...TS, exportName: 'named' }).score([input('', '')])).toEqual([good(7)]);
  });

  test('reports what is missing when a module cannot be loaded', async () => {
    await expect(host({ ...TS, exportName: 'nobody' }).ready()).rejects.toThrow(
      /exports no function nobody.*computeScore, named/,
    );
    await expect(host({ ...PY, exportName: 'nobody' }).score([input('', '')])).rejects.toThrow(
      /has no function nobody/,
    );
    expect(() => host({ ...TS, path: '/nowhere.ts' })).toThrow(/no scorer module/);
    expect(() => host({ ...TS, path: fixture('../../../package.json') })).toThrow(/TypeScript, JavaScript or Python/);
  });
});

describe.each([
  ['TypeScript', TS],
  ['Python', PY],
] as const)('a %s scorer', (_, spec) => {
  test('that throws or returns no number fails only its sample, with the reason', async () => {
    const [before, thrown, notNumber, after] = await host(spec).score(orders('5', 'throw', 'nan', '5'));
    expect(before).toEqual(good(1));
    expect(thrown).toMatchObject({ ok: false, code: 'threw', reason: expect.stringContaining('out of ideas') });
    expect(notNumber).toMatchObject({
      ok: false,
      code: 'bad-result',
      reason: expect.stringMatching(/finite number, got nan/i),
    });
    expect(after).toEqual(good(1));
  });

  test('that hangs is killed, and the other samples are scored', async () => {
    const outcomes = await host(spec, SHORT).score(orders('5', 'hang', '5', 'wait', '5'));
    expect(codes(outcomes)).toEqual(['ok', 'timeout', 'ok', 'timeout', 'ok']);
  });

  test('that ends its process fails after one retry, and the other samples are scored', async () => {
    const outcomes = await host(spec).score(orders('5', 'exit', '5'));
    expect(codes(outcomes)).toEqual(['ok', 'crashed', 'ok']);
    expect(outcomes[1]).toMatchObject({ reason: expect.stringContaining('exit code 3') });
  });

  test('may print anything', async () => {
    const printed: string[] = [];
    const outcomes = await host(spec).score(orders('print', '5', 'print'), {
      onPrint: (line, index) => printed.push(`${index}: ${line}`),
    });
    expect(outcomes).toEqual([good(0.5), good(1), good(0.5)]);
    expect(printed).toContainEqual(expect.stringMatching(/^0: .*"score":99/));
    expect(printed).toContainEqual(expect.stringMatching(/^2: .*"score":99/));
  });

  test('may return columns beside the score', async () => {
    const [outcome] = await host(spec).score(orders('columns'));
    expect(outcome).toMatchObject({
      ok: true,
      score: 1,
      columns: { pred: 'x', ratio: null, parts: expect.stringMatching(/\[1, ?2\]/) },
    });
  });

  test('is given the settings', async () => {
    const [outcome] = await host({ ...spec, settings: { strict: true, tau: 0.5 } }).score(orders('settings'));
    expect(outcome).toEqual(good(1, { strict: true, tau: 0.5 }));
  });

  test('has several samples in flight', async () => {
    const outcomes = await host(spec, { ...SHORT, concurrency: 2 }).score(orders('wait', '5', '6', '5', 'throw', '5'));
    expect(codes(outcomes)).toEqual(['timeout', 'ok', 'ok', 'ok', 'threw', 'ok']);
  });
});

describe('memory', () => {
  test.each([
    ['a TypeScript scorer that fills the heap', TS, 'heap'],
    ['a TypeScript scorer that fills memory outside the heap', TS, 'buffers'],
    ['a Python scorer that asks for too much', PY, 'memory'],
  ] as const)('%s fails alone', async (_, spec, order) => {
    const outcomes = await host(spec, LIMITS).score(orders('5', order, '5'));
    expect(codes(outcomes)).toEqual(['ok', 'memory', 'ok']);
  });
});

test('an asynchronous Python scorer is awaited', async () => {
  expect(await host(PY).score(orders('async'))).toEqual([good(0.25)]);
});

test('closing a host ends its processes and rejects waiting samples', async () => {
  const closing = host(TS, { ...LIMITS, timeoutMs: 60_000 });
  const waiting = closing.score(orders('wait', '5'));
  await closing.ready();
  const refused = expect(waiting).rejects.toMatchObject({ code: 'ScorerHostClosed' });
  await closing.close();
  await refused;
});

function host(spec: ScorerSpec, limits: ScorerLimits = LIMITS): ScorerHost {
  const created = createScorerHost(spec, limits);
  hosts.push(created);
  return created;
}

function orders(...texts: readonly string[]): ScorerInput[] {
  return texts.map((text) => input(text, text === '5' ? '5' : '7'));
}

function input(solutionStr: string, groundTruth: string): ScorerInput {
  return { dataSource: 'test', solutionStr, groundTruth };
}

function good(score: number, columns = {}): ScoreOutcome {
  return { ok: true, score, columns };
}

function codes(outcomes: readonly ScoreOutcome[]): string[] {
  return outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.code));
}

function fixture(name: string): string {
  return fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));
}
