import { describe, expect, it } from 'vitest';
import type { Presence } from '../../core/wire/messages.ts';
import { createPrinter } from '../printer/printer.ts';
import type { Driven } from '../../api/index.ts';
import { waitsFor, workerStatus } from '../../api/runs/status-report.ts';
import { doingText, workerTable } from './status-text.ts';
import { fixScorerHint } from '../../core/scorer-hint.ts';
import { nextCommand, resumeCommand } from './words.ts';
import { exampleEngine } from '../../core/wire/examples.test-support.ts';

const run = { runId: 'toy-1', kind: 'rl', state: 'running', wish: 'run' } as const;
const driven: Driven = { type: 'driven', stage: 'update' };
const worker = (part: Partial<Presence> = {}): Presence => ({
  v: 1,
  instance: 'here',
  worker: 'local-1',
  incarnation: 'a',
  pid: 1,
  host: 'h',
  roles: ['trainer', 'rollout', 'reward'],
  state: 'ready',
  engines: [],
  threads: 2,
  profiles: ['any'],
  jobs: [],
  failuresInARow: 0,
  loopDelayMs: 3.4,
  since: '2026-01-01T00:00:00Z',
  ...part,
});

const here = worker().instance;

describe('what a run waits for', () => {
  it.each([
    ['the stack', waitsFor(run, 'down', { type: 'unknown' }, [], undefined), 'petrel up'],
    ['a driver', waitsFor(run, 'up', { type: 'nobody' }, [worker()], undefined), 'petrel resume toy-1'],
    [
      'the command that ends it',
      waitsFor({ ...run, wish: 'stop' }, 'up', { type: 'nobody' }, [worker()], undefined),
      'petrel stop toy-1',
    ],
    [
      'the control process',
      waitsFor(run, 'up', { ...driven, failing: 's3://b: access denied' }, [worker()], undefined),
      'the control process: s3://b: access denied',
    ],
    ['a worker', waitsFor(run, 'up', driven, [], 'update'), 'no worker with role trainer'],
    ['a role', waitsFor(run, 'up', driven, [worker({ roles: ['reward'] })], 'evaluate'), 'no worker with role rollout'],
    ['health', waitsFor(run, 'up', driven, [worker({ state: 'unhealthy' })], 'rollout'), 'unhealthy'],
    [
      'leaving workers to be replaced',
      waitsFor(run, 'up', driven, [worker({ state: 'draining' })], 'rollout'),
      'are leaving',
    ],
    [
      'a lease',
      waitsFor(run, 'up', driven, [worker({ lease: 'other-1' })], 'update'),
      'the trainer is busy with other-1',
    ],
  ])('may be %s', (_what, reason, expected) => {
    expect(reason).toContain(expected);
  });

  it('is nothing while a worker works, or while the run is paused', () => {
    expect(waitsFor(run, 'up', driven, [worker({ lease: 'toy-1' })], 'update')).toBeUndefined();
    expect(waitsFor(run, 'up', driven, [worker({ lease: 'other-1' }), worker()], 'update')).toBeUndefined();
    expect(waitsFor({ ...run, state: 'paused' }, 'up', driven, [], 'paused')).toBeUndefined();
  });
});

describe('what to type next', () => {
  it('is petrel up while the stack of a running run is down, and not for the run of another stack', () => {
    expect(nextCommand({ ...run, stack: 'down' })).toBe('petrel up');
    expect(nextCommand({ ...run, stack: 'down', foreign: true })).toBe('petrel status toy-1 --watch');
    expect(nextCommand({ ...run, stack: 'up' })).toBe('petrel status toy-1 --watch');
    const paused = { ...run, state: 'paused' as const };
    const fix = fixScorerHint('toy-1', {
      type: 'module',
      module: '',
      fileName: 's.py',
      exportName: '',
      deterministic: true,
    });
    const reason = { code: 'TooManyFailedSamples', message: '', hint: `${fix} (the samples are scored again)` };
    expect(nextCommand({ ...paused, reason })).toBe(
      'petrel resume toy-1 reward.custom_reward_function.path=./s.py --accept',
    );
    expect(resumeCommand('toy-1', reason)).toBe(nextCommand({ ...paused, reason }));
    expect(nextCommand({ ...paused, reason: { code: 'X', message: '' } })).toBe('petrel resume toy-1');
  });
});

describe('workers in a status', () => {
  const stdout = { columns: 200, write: () => {} };
  const printer = createPrinter({ json: false, stdout, stderr: stdout, env: {} });

  it('are named whose engine gives other bits than its profile names', () => {
    const proofs = [
      { compute: 'fp32', profile: 'det-1', state: 'refused', ms: 20 },
      { compute: 'bf16', profile: 'det-bf16-3-amx', state: 'proved', ms: 30 },
    ] as const;
    const table = workerTable(
      [workerStatus(worker({ engines: [{ ...exampleEngine, proofs: [...proofs] }] }), here)],
      printer,
    );
    expect(table).toContain('local-1: the engine gives other bits in fp32 than det-1 names');
    expect(table).not.toContain('bf16');
  });

  it('are told apart by health, with their last error', () => {
    const sick = worker({
      worker: 'local-2',
      state: 'unhealthy',
      failuresInARow: 3,
      lastError: { code: 'EngineFailed', message: 'out of memory\nand more' },
    });
    const text = workerTable([workerStatus(worker(), here), workerStatus(sick, here)], printer);
    expect(text).toMatch(/local-2 +UNHEALTHY .* EngineFailed: out of memory \(3 in a row\)/);
    expect(text).toMatch(/local-1 +ready /);
    expect(text).not.toMatch(/delay/i); // only those who work on petrel want it: it is in --json
    expect(workerTable([workerStatus(worker({ state: 'draining' }), here)], printer)).toMatch(/local-1 +draining /);
    expect(workerStatus(sick, here)).not.toHaveProperty('incarnation');
  });

  it('show how fast those decode that have decoded', () => {
    const sampler = worker({ worker: 'local-2', tokensPerSecond: 8123.4 });
    const text = workerTable([workerStatus(worker(), here), workerStatus(sampler, here)], printer);
    expect(text).toMatch(/TOKENS\/S$/m);
    expect(text).toMatch(/^local-2 .* 8.1k$/m);
    expect(text).toMatch(/^local-1 .* -$/m);
    expect(workerTable([workerStatus(worker(), here)], printer)).not.toContain('TOKENS/S');
  });

  it('do something in percent', () => {
    expect(doingText({ stage: 'rollout', progress: { done: 37, total: 100, note: 'tokens' } })).toBe('rollout 37 %');
    expect(doingText({ stage: 'update' })).toBe('update');
    expect(doingText({ stage: 'update', progress: { done: 9, total: 9, note: '' } })).toBe('update, finishing');
    expect(doingText({ stage: 'evaluate', progress: { done: 1, total: 4, note: '' } })).toBe('validation 25 %');
    expect(doingText({ stage: 'checkpoint' })).toBe('saving the checkpoint');
  });
});
