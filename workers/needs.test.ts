import { afterEach, describe, expect, it, vi } from 'vitest';
import { UnfitError } from '../core/errors.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import { jobNeeds, missedNeed, type NeedPorts } from './needs.ts';
import { exampleEngine } from '../core/wire/examples.test-support.ts';

const ports: NeedPorts = {
  cache: '/nowhere',
  openStore: () => Promise.reject(new Error('no store')),
  engines: [],
  closedToScorers: false,
};

const job = (input: Record<string, unknown>, stage: JobMessage['stage'] = 'reward'): JobMessage => ({
  v: 1,
  jobId: 'job',
  stage,
  runId: 'run-1',
  at: { term: 1, iteration: 1 },
  store: 'file:///store',
  input,
});

const builtin = (name?: string) => ({ type: 'builtin', revision: '1', ...(name && { name }) });
const own = { type: 'module', module: 'a'.repeat(64), fileName: 'mine.py', exportName: 'f', deterministic: false };
const service = { sandbox_fusion: { url: 'http://x' } };

const packages = 'the Python packages of scorers';
const programs = 'a sandbox for programs of the model';

const scorerNeeds = (message: JobMessage) =>
  jobNeeds(message, ports)
    .map(({ name }) => name)
    .filter((name) => !name.startsWith('the store'));

afterEach(() => vi.unstubAllEnvs());

describe('a reward job', () => {
  it.each([
    ['whose scorer is a function', { scorer: builtin('gsm8k') }, []],
    ['whose scorer is in Python', { scorer: builtin('prime_math') }, [packages]],
    ['that runs programs', { scorer: builtin('code') }, [programs]],
    ['whose programs a service runs', { scorer: builtin('code'), settings: service }, []],
    ['whose rows choose', { scorer: builtin() }, [`${packages}, for rows of run-1`, `${programs}, for rows of run-1`]],
    ['whose own scorer wants a sandbox', { scorer: own, sandbox: true }, ['a sandbox for a Python scorer']],
    ['whose own scorer wants none', { scorer: own }, []],
    ['that asks an endpoint', { scorer: builtin('judge'), endpoint: { url: 'http://x' } }, []],
    ['whose endpoint wants a key', { scorer: own, endpoint: { apiKey: 'env:JUDGE_KEY' } }, ['the variable JUDGE_KEY']],
    ['of an unknown kind', {}, []],
  ])('%s needs what its scorer needs: %j', (_, input, needs) => {
    expect(scorerNeeds(job(input))).toEqual(needs);
    expect(scorerNeeds(job({ ...input, endpoint: {} }, 'rollout'))).toEqual([]);
  });

  it('with an own scorer needs a sandbox on a bought machine, and is refused without one', async () => {
    const bought = { ...ports, closedToScorers: true };
    const needsOf = (input: Record<string, unknown>) => jobNeeds(job(input), bought).map(({ name }) => name);
    const name = 'a sandbox around a scorer that is not petrel’s';
    expect(needsOf({ scorer: own })).toContain(name);
    for (const walled of [{ scorer: own, sandbox: true }, { scorer: builtin('gsm8k') }])
      expect(needsOf(walled)).not.toContain(name);
    const need = jobNeeds(job({ scorer: own }), bought).find((one) => one.name === name);
    await expect(need?.check()).rejects.toMatchObject({
      code: 'OpenScorer',
      hint: expect.stringMatching(/^reward\.sandbox=true/),
    });
    expect(missedNeed(new UnfitError('OpenScorer', 'none'), job({ scorer: own }), bought)?.name).toBe(name);
  });

  it.each([
    ['NoScorerPackages', 'PETREL_HOME', packages],
    ['NoSandbox', 'PATH', programs],
  ])('whose rows choose is refused for %s after the first one, until the need is met', async (code, variable, name) => {
    vi.stubEnv(variable, '/nowhere');
    const need = missedNeed(new UnfitError(code, 'none'), job({ scorer: builtin() }), ports);
    expect(need?.name).toBe(`${name}, for rows of run-1`);
    await need?.check();
    await expect(need?.checkAgain?.()).rejects.toThrow(UnfitError);
  });

  it('that opens a deterministic run is refused by an engine with other bits, and by no other', async () => {
    const open = job(
      { engine: { engine: 'native', compute: 'auto', deterministic: true, maxTokensPerMicroBatch: 1 } },
      'open',
    );
    const refusal = new UnfitError('UnprovenBits', 'none');
    const needOf = (state: 'proved' | 'refused') => {
      const proofs = [{ compute: 'fp32' as const, profile: 'det-1', state, ms: 1 }];
      return missedNeed(refusal, open, { ...ports, engines: [{ ...exampleEngine, proofs }] });
    };
    await expect(needOf('refused')?.check()).rejects.toMatchObject({ code: 'UnprovenBits' });
    await needOf('proved')?.check();
  });

  it('that names its scorer is refused at once', async () => {
    vi.stubEnv('PETREL_HOME', '/nowhere');
    vi.stubEnv('PATH', '/nowhere');
    for (const [name, code] of [
      ['geo3k', 'NoScorerPackages'],
      ['code', 'NoSandbox'],
    ] as const) {
      const need = missedNeed(new UnfitError(code, 'none'), job({ scorer: builtin(name) }), ports);
      await expect(need?.check()).rejects.toMatchObject({ code });
    }
  });
});

describe('a rollout job that a server samples', () => {
  const server = { api: 'vllm', url: 'http://127.0.0.1:9', apiKey: 'env:SAMPLER_KEY', timeoutMs: 1_000 };
  const profile = {
    ...{ id: 'any', engine: 'torch', device: 'cpu', build: 'torch', compute: 'fp32', deterministic: false },
    maxTokensPerMicroBatch: 64,
  };
  const rollout = job({ sampler: 'http', server, profile }, 'rollout');
  const engines = [exampleEngine, { ...exampleEngine, name: 'http' }];

  it('needs the key and the server, and no engine of the trainer', async () => {
    vi.stubEnv('SAMPLER_KEY', 'value');
    const needs = jobNeeds(rollout, { ...ports, engines }).slice(1);
    expect(needs.map(({ name }) => name)).toEqual([
      'the variable SAMPLER_KEY',
      'the numeric profile any, fp32',
      'the server http://127.0.0.1:9',
    ]);
    for (const { check } of needs) await check();
    const older = jobNeeds(rollout, { ...ports, engines: [exampleEngine] });
    await expect(older.find(({ name }) => name.startsWith('the numeric'))?.check()).rejects.toMatchObject({
      code: 'OtherEngine',
    });
  });

  it('waits for a server that a job found gone, by asking it', async () => {
    vi.stubEnv('SAMPLER_KEY', 'value');
    const need = missedNeed(new UnfitError('ServerDown', 'gone'), rollout, { ...ports, engines });
    expect(need?.name).toBe('the server http://127.0.0.1:9');
    await expect(need?.checkAgain?.()).rejects.toMatchObject({ code: 'ServerDown' });
  });
});
