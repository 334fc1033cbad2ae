import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';

const bootstrap = (file: string): string => join(packageRoot(), 'infra', file);

let place: string;
const started: ChildProcess[] = [];
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'petrel-setup-'));
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  rmSync(place, { recursive: true });
});

/** A set-up that prints `waiting` and `held`, and ends when its stdin closes. */
const setUp = `const { withSetupLock } = await import(process.argv[1]);
await withSetupLock([process.argv[2], process.argv[2]], () => console.log('waiting'), async () => {
  console.log('held');
  for await (const _ of process.stdin);
});`;

function start() {
  const child = spawn(process.execPath, ['--input-type=module', '-e', setUp, bootstrap('bootstrap/lock.mjs'), place], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  started.push(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return { child, exited: once(child, 'exit'), says: async () => (await lines.next()).value as string | undefined };
}

describe('set-up', () => {
  it('waits for another one, and continues when that ends', async () => {
    const first = start();
    expect(await first.says()).toBe('held');
    const second = start();
    expect(await second.says()).toBe('waiting');
    first.child.stdin.end();
    expect(await second.says()).toBe('held');
    second.child.stdin.end();
    await Promise.all([first.exited, second.exited]);
  });

  it('takes over when the other one is killed', async () => {
    const first = start();
    expect(await first.says()).toBe('held');
    const second = start();
    expect(await second.says()).toBe('waiting');
    first.child.kill('SIGKILL');
    expect(await second.says()).toBe('held');
    second.child.stdin.end();
    await second.exited;
  });

  it('refuses an unknown option', async () => {
    const child = spawn(process.execPath, [bootstrap('bootstrap.mjs'), '--fast'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.setEncoding('utf8');
    let text = '';
    child.stderr.on('data', (chunk: string) => (text += chunk));
    const [code] = (await once(child, 'close')) as [number];
    expect([code, text]).toEqual([1, expect.stringContaining('unknown option --fast')]);
  });
});
