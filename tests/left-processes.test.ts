/** What a test started ends with it, whatever ends the test: main.ts runs all tests as it is done here. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { builtFile } from '../infra/home.ts';
import { strangers } from '../infra/stack/adoption.ts';
import { identify, isAlive, signalProcess, waitForExit } from '../infra/stack/process.ts';
import type { ProcessIdentity } from '../infra/stack/process.ts';
import { patienceMs } from './patience.ts';

/** The only process that a process has started. */
function childOf(pid: number): number {
  const [child, ...others] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  if (child === undefined || others.length > 0) throw new Error(`${pid} has not exactly one child`);
  return child;
}

/** What tests/runner/fixtures/stack.ts prints. */
interface Started {
  readonly home: string;
  readonly program: ProcessIdentity;
  readonly stack: readonly ProcessIdentity[];
}

describe('a stack that a test has started', () => {
  let runner: ChildProcess;
  let started: Started;

  beforeEach(async () => {
    const program = builtFile('tests/runner/fixtures/reaped-stack.js');
    runner = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface({ input: runner.stdout as NonNullable<typeof runner.stdout> });
    const [line] = (await once(lines, 'line')) as [string];
    started = JSON.parse(line) as Started;
    expect(started.stack.length).toBeGreaterThanOrEqual(5);
    expect(started.stack.filter((one) => !isAlive(one))).toEqual([]);
  });
  afterEach(() => {
    for (const left of strangers(started.home, [])) signalProcess(left, 'SIGKILL');
    rmSync(started.home, { recursive: true, force: true, maxRetries: 3 });
  });

  it.each<readonly [string, () => ProcessIdentity | undefined]>([
    ['the process of the test', () => started.program],
    ['what runs the tests', () => identify(runner.pid ?? 0)],
    ['what stands above the reaper', () => identify(childOf(runner.pid ?? 0))],
    ['the reaper', () => identify(childOf(childOf(runner.pid ?? 0)))],
  ])('ends when %s is killed', async (_, which) => {
    const killed = which();
    if (killed === undefined) throw new Error('it has ended before it was killed');
    expect(signalProcess(killed, 'SIGKILL')).toBe(true);
    const ends = await Promise.all(started.stack.map((one) => waitForExit(one, patienceMs)));
    expect(ends).not.toContain(false);
    expect(strangers(started.home, [])).toEqual([]);
  });
});
