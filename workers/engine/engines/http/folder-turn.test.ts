import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inFreeTurn, inTurn } from './folder-turn.ts';

let folder: string;
const never = 1e9;
const timing = { poll: 10, silent: never, longest: never };
const lock = () => join(folder, 'lock');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-turn-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a turn in a folder', () => {
  it('is one worker’s at a time, and leaves nothing behind', async () => {
    let inside = 0;
    const one = async () => {
      inside += 1;
      await new Promise((resolve) => setImmediate(resolve));
      return inside--;
    };
    const turns = Array.from({ length: 4 }, () => inTurn(folder, one, undefined, timing));
    expect(await Promise.all(turns)).toEqual([1, 1, 1, 1]);
    expect(existsSync(lock())).toBe(false);
  });

  it('is taken from a process of this machine that is dead', async () => {
    writeFileSync(lock(), `${hostname()} 4194305 one`);
    expect(await inTurn(folder, async () => 'mine', undefined, timing)).toBe('mine');
  });

  it('is left to another machine, whose processes have other numbers, and gives ticks', async () => {
    writeFileSync(lock(), 'elsewhere 4194305 one');
    let ticks = 0;
    const tick = () => {
      ticks += 1;
      rmSync(lock(), { force: true });
    };
    expect(await inTurn(folder, async () => ticks, tick, timing)).toBe(1);
  });

  it('is taken from another machine that is silent', async () => {
    writeFileSync(lock(), 'elsewhere 1 one');
    expect(await inTurn(folder, async () => 'mine', undefined, { ...timing, silent: 50 })).toBe('mine');
  });

  it('is not waited for without end', async () => {
    writeFileSync(lock(), `${hostname()} ${process.pid} one`);
    await expect(inTurn(folder, async () => {}, undefined, { ...timing, longest: 0 })).rejects.toMatchObject({
      kind: 'retryable',
      where: lock(),
      hint: expect.stringContaining(`rm ${lock()}`),
    });
  });

  it('is not waited for where only a free one is wanted', async () => {
    writeFileSync(lock(), `${hostname()} ${process.pid} one`);
    await inFreeTurn(folder, () => Promise.reject(new Error('it is not free')));
  });

  it('names a folder that cannot be made', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    await expect(inTurn(join(file, 'below'), async () => {})).rejects.toMatchObject({
      code: 'WrongServer',
      where: 'rollout.weights_dir',
      message: expect.stringContaining(join(file, 'below')),
    });
  });

  it.skipIf(process.getuid?.() === 0)('names a folder that cannot be written', async () => {
    const closed = join(folder, 'closed');
    mkdirSync(closed);
    chmodSync(closed, 0o555);
    await expect(inTurn(closed, async () => {})).rejects.toMatchObject({
      code: 'WrongServer',
      message: expect.stringContaining(`${closed} (EACCES)`),
    });
  });
});
