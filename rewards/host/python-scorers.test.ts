import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { at } from '../../core/at.ts';
import { UnfitError } from '../../core/errors.ts';
import { createScorerHost, type ScoreOutcome, type ScorerHost, type ScorerInput, type ScorerSpec } from './index.ts';
import { prepareScorer } from './prepare-scorer.ts';
import { hasPackages } from './python-scorers.ts';

const place = mkdtempSync(join(tmpdir(), 'petrel-python-scorers-'));
const hosts: ScorerHost[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

function host(spec: Omit<Extract<ScorerSpec, { type: 'builtin' }>, 'type'>): ScorerHost {
  const opened = createScorerHost({ type: 'builtin', ...spec }, { timeoutMs: 600_000, memoryMb: 512, concurrency: 1 });
  hosts.push(opened);
  return opened;
}

const row = (solutionStr: string, groundTruth: unknown, dataSource = 'numina_olympiads'): ScorerInput => ({
  dataSource,
  solutionStr,
  groundTruth,
});

const scores = (outcomes: readonly ScoreOutcome[]) =>
  outcomes.map((outcome) => (outcome.ok ? outcome.score : outcome.code));

describe.skipIf(!hasPackages())('scorers in Python (they need: node setup/main.mjs --scorers)', () => {
  test('a comparison that never ends is a wrong answer, and the next sample is unaffected', async () => {
    const prime = host({ name: 'prime_math', settings: { comparison_timeout: 5 } });
    const outcomes = await prime.score([
      row('\\boxed{9**9**9**9}', 'x'),
      row('\\boxed{9**9**9\\pi}', '2\\pi'),
      row('\\boxed{(x+1)^2}', 'x^2+2x+1'),
    ]);
    expect(scores(outcomes)).toEqual([0, 0, 1]);
  });

  test('nothing that a response wrote is run', async () => {
    const touched = join(place, 'touched');
    const call = `__import__('os').system('touch ${touched}')`;
    const truth = '\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}';
    const outcomes = await host({ name: 'prime_math' }).score([
      row(`\\boxed{[${call},2]}`, truth),
      row(`\\boxed{Matrix([[1],[${call}]])}`, truth),
      row(`\\boxed{${call} or \\pi}`, '\\pi'),
    ]);
    expect(scores(outcomes)).toEqual([0, 0, 0]);
    expect(existsSync(touched)).toBe(false);
  });

  test.each(['prime_math', 'math_verify', 'geo3k'])('%s fails a sample without ground truth', async (name) => {
    const [missing, number] = await host({ name }).score([row('\\boxed{5}', null), row('\\boxed{5}', 5)]);
    expect(missing).toMatchObject({ ok: false, code: 'threw' });
    expect(missing).toHaveProperty(
      'reason',
      expect.stringContaining(`${name} expects a text as ground truth, got none`),
    );
    expect(number).toMatchObject({ ok: true, columns: { acc: true } });
  });

  test('rows that choose their scorers reach those in Python too, in the order of the call', async () => {
    const routed = host({});
    const outcomes = await routed.score([
      row('\\boxed{x+1}', '1+x'),
      row('#### 5', '5', 'openai/gsm8k'),
      row('<think>a</think>\\boxed{3}', '3', 'hiyouga/geometry3k'),
      row('5', '5', 'elsewhere'),
      row('Answer: 4', '5', 'aime2026'),
      row('\\boxed{x}', '1+x'),
    ]);
    expect(scores(outcomes)).toEqual([1, 1, 1, 'threw', -1, 0]);
    expect(at(outcomes, 3)).toHaveProperty('reason', expect.stringContaining('no scorer for data_source "elsewhere"'));
  });
});

describe('without the packages', () => {
  test('the machine is unfit, with what to type, and scorers that are functions work', async () => {
    vi.stubEnv('PETREL_HOME', place);
    expect(() => prepareScorer('prime_math', {}, { timeoutMs: 1_000, memoryMb: 512 })).toThrow(UnfitError);
    expect(() => host({ name: 'prime_math' })).toThrow(UnfitError);
    expect(() => host({ name: 'prime_math' })).toThrow(/the scorer prime_math needs Python packages/);
    const { hint } = (await host({})
      .score([row('5', '5')])
      .catch((error: unknown) => error as UnfitError)) as UnfitError;
    expect(hint).toMatch(/^node \/.*setup\/main\.mjs --scorers$/);
    prepareScorer('math_dapo', {}, { timeoutMs: 1_000, memoryMb: 512 });
    expect(scores(await host({}).score([row('Answer: 5', '5', 'math')]))).toEqual([1]);
    rmSync(place, { recursive: true });
  });
});
