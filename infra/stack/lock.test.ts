import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { builtFile } from '../home.ts';
import { lockHolder, tryLock } from './lock.ts';
import { ownIdentity } from './process.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Takes the lock in another process, which prints `held` or `no`, and holds it until its stdin ends. */
const contender = `const { tryLock } = await import(process.argv[1]);
process.stdin.once('data', () => {
  console.log(tryLock(process.argv[2]) ? 'held' : 'no');
  process.stdin.resume();
});
console.log('here');`;

async function startContender() {
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', contender, builtFile('infra/stack/lock.js'), folder],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  child.stdout.setEncoding('utf8');
  await once(child.stdout, 'data');
  return {
    async contend(): Promise<string> {
      child.stdin.write('go\n');
      const [answer] = (await once(child.stdout, 'data')) as [string];
      return answer.trim();
    },
    async kill(): Promise<void> {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}

describe('the lock of the stack', () => {
  it('is held by one process and can be taken again after its release', () => {
    const lock = tryLock(folder);
    expect(lock).toBeDefined();
    expect(lockHolder(folder)).toEqual(ownIdentity());
    expect(tryLock(folder)).toBeUndefined();
    lock!.release();
    expect(lockHolder(folder)).toBeUndefined();
    expect(tryLock(folder)).toBeDefined();
  });

  it('of a killed process goes to exactly one of several contenders', async () => {
    const first = await startContender();
    expect(await first.contend()).toBe('held');
    expect(tryLock(folder)).toBeUndefined();
    await first.kill();

    const contenders = await Promise.all(Array.from({ length: 6 }, startContender));
    const answers = await Promise.all(contenders.map((one) => one.contend()));
    expect(answers.filter((answer) => answer === 'held')).toHaveLength(1);
    await Promise.all(contenders.map((one) => one.kill()));
  });

  it('is not held by another process that got the holder’s pid later', () => {
    writeFileSync(join(folder, '7'), JSON.stringify({ ...ownIdentity(), startTime: '1', released: false }));
    expect(lockHolder(folder)).toBeUndefined();
    expect(tryLock(folder)).toBeDefined();
  });
});
