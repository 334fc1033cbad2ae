import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';

const bootstrap = (file: string): string => join(packageRoot(), 'setup', file);

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
  const child = spawn(process.execPath, ['--input-type=module', '-e', setUp, bootstrap('lock.mjs'), place], {
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

  it('accepts a lock to which npm adds or from which it prunes optional packages, and no other change', async () => {
    const { differences } = (await import(bootstrap('npm.mjs'))) as {
      differences: (wanted: Map<string, object>, chosen: Map<string, object>) => string[];
    };
    const one = { version: '1.0.0', integrity: 'sha512-a' };
    const optional = { ...one, optional: true };
    const wanted = new Map<string, object>([
      ['needed', one],
      ['linux', optional],
      ['pruned', optional],
    ]);
    const chosen = (changes: Record<string, object>) =>
      new Map<string, object>(Object.entries({ needed: one, linux: optional, added: optional, ...changes }));
    expect(differences(wanted, chosen({}))).toEqual([]);
    expect(differences(wanted, chosen({ another: one }))).toEqual(['another']);
    expect(differences(wanted, chosen({ needed: { ...one, version: '1.0.1' } }))).toEqual(['needed']);
    expect(differences(wanted, chosen({ linux: { ...optional, integrity: 'sha512-b' } }))).toEqual(['linux']);
    expect(differences(new Map([...wanted, ['lost', one]]), chosen({}))).toEqual(['lost']);
  });

  it('refuses an unknown option', async () => {
    const child = spawn(process.execPath, [bootstrap('main.mjs'), '--fast'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.setEncoding('utf8');
    let text = '';
    child.stderr.on('data', (chunk: string) => (text += chunk));
    const [code] = (await once(child, 'close')) as [number];
    expect([code, text]).toEqual([1, expect.stringContaining('unknown option --fast')]);
  });
});
