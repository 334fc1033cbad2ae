/** No process that a scorer starts survives it, and no scorer can keep the host waiting. */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { createScorerHost, type ScorerHost, type ScorerLimits } from './scorer-host.ts';

const path = fileURLToPath(new URL('./fixtures/escapes.py', import.meta.url));
/** An argument of every process that the scorer starts. */
const mark = `petrel-escape-${process.pid}`;
const limits: ScorerLimits = { timeoutMs: 1_000, memoryMb: 200, concurrency: 1 };

const hosts: ScorerHost[] = [];
afterEach(() => Promise.all(hosts.splice(0).map((host) => host.close())));

function host(more: Partial<ScorerLimits> = {}): ScorerHost {
  const created = createScorerHost({ type: 'module', path, exportName: 'compute_score' }, { ...limits, ...more });
  hosts.push(created);
  return created;
}

const order = (solutionStr: string) => ({ dataSource: 'test', solutionStr, groundTruth: mark });

function left(): number {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(mark);
    } catch {
      return false; // it has ended
    }
  }).length;
}

describe('a scorer that hangs and has started', () => {
  test.each([
    ['a process in a session of its own, without an environment, that holds the pipes', 'session'],
    ['a process by a double fork', 'double fork'],
    ['a process that forks and exits endlessly', 'fork chain'],
    ['a process that forks endlessly', 'fork loop'],
    ['a tree of 256 processes', 'fork tree'],
  ])('%s, ends with all of them soon after its limit', async (_, way) => {
    const scorers = host();
    await scorers.ready();
    const [outcome] = await scorers.score([order(way)]);
    // They sleep for longer than any test may last.
    expect(outcome).toMatchObject({ ok: false });
    expect(left()).toBe(0);
    expect(await scorers.score([order('fine')])).toMatchObject([{ ok: true }]);
  });
});

describe('a scorer', () => {
  test('that takes memory in a grandchild fails by the memory limit', async () => {
    const [outcome] = await host({ timeoutMs: 20_000 }).score([order('hog')]);
    expect(outcome).toMatchObject({ ok: false, code: 'memory', reason: expect.stringMatching(/limit is 200 MiB/) });
    expect(left()).toBe(0);
  });

  test('is not charged once per child for memory that its children share', async () => {
    expect(await host({ timeoutMs: 20_000 }).score([order('shared')])).toMatchObject([{ ok: true }]);
  });

  test('that kills its process group kills only itself', async () => {
    expect(await host().score([order('killpg'), order('fine')])).toMatchObject([
      { ok: false, code: 'crashed' },
      { ok: true },
    ]);
  });

  test('that ends also ends the processes that it has started', async () => {
    const [outcome] = await host().score([order('exit')]);
    expect(outcome).toMatchObject({ code: 'crashed', reason: expect.stringContaining('exit code 3') });
    expect(left()).toBe(0);
  });

  test('may start processes that run between its calls, until the host is closed', async () => {
    const scorers = host();
    expect(await scorers.score([order('stay'), order('fine')])).toMatchObject([{ ok: true }, { ok: true }]);
    await expect.poll(left).toBe(1); // its command line is empty for a short time
    await scorers.close();
    expect(left()).toBe(0);
  });
});

describe('a call that is aborted', () => {
  test('kills its scorers at once, without an effect on other calls', async () => {
    const scorers = host({ timeoutMs: 600_000, concurrency: 2 });
    await scorers.ready();
    const leave = new AbortController();
    const started = new Promise<void>((resolve) => {
      const watch = setInterval(() => {
        if (left() === 0) return;
        clearInterval(watch);
        resolve();
      }, 10);
    });
    const given = scorers.score([order('session'), order('session'), order('session')], { signal: leave.signal });
    const refused = expect(given).rejects.toThrow('nobody waits');
    await started;
    const other = scorers.score([order('fine'), order('fine')]);
    leave.abort(new Error('nobody waits'));
    await refused;
    expect(await other).toMatchObject([{ ok: true }, { ok: true }]);
    await scorers.close();
    expect(left()).toBe(0);
  });

  test('ends also while the scorer is being loaded', async () => {
    const leave = new AbortController();
    const scorers = host();
    const given = scorers.score([order('fine')], { signal: leave.signal });
    leave.abort(new Error('nobody waits'));
    await expect(given).rejects.toThrow('nobody waits');
    expect(await scorers.score([order('fine')])).toMatchObject([{ ok: true }]);
  });
});
