// @module-tag long
/** Test files borrow homes in which a stack runs: one file at a time, and never a stack that a file has damaged. */
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { petrelHome } from '../infra/home.ts';
import { strangers } from '../infra/stack/adoption.ts';
import { ensureStack, readStack } from '../infra/stack/index.ts';
import { borrowHome, lentHomes, lentHomesVariable } from './lent-homes.ts';
import type { LentHome } from './lent-homes.ts';
import { LoopUnderTest, onePool } from './loop-under-test.ts';
import { Lender } from './runner/lender.ts';
import { kill, pids, processOf } from './stack-under-test.ts';

const toolchain = join(petrelHome(), 'toolchain');
const outer = process.env[lentHomesVariable];

describe('a lender', () => {
  let lender: Lender;
  beforeEach(() => {
    lender = new Lender();
  });
  afterEach(async () => {
    const homes = lentHomes(process.env[lentHomesVariable] ?? '');
    if (outer === undefined) delete process.env[lentHomesVariable];
    else process.env[lentHomesVariable] = outer;
    await lender.end();
    expect(homes.flatMap((home) => strangers(home, []))).toEqual([]);
  });

  function borrowed(): LentHome {
    const lent = borrowHome('loop', toolchain);
    if (lent === undefined) throw new Error('nothing was lent');
    return lent;
  }

  it('gives the next file the processes that run, a second one at the same time a home of its own', async () => {
    const first = LoopUnderTest.onLentStack();
    const stack = await first.up();
    await first.completed();
    // A process that answered late is not ready for a moment, and its stack is rightly lent to nobody.
    await expect.poll(() => readStack(first.home)?.children.every(({ state }) => state === 'ready')).toBe(true);
    await first.remove();
    const [second, beside] = [LoopUnderTest.onLentStack(), borrowed()];
    expect(second.home).toBe(first.home);
    expect(beside.home).not.toBe(first.home);
    expect(pids(await second.up())).toEqual(pids(stack));
    await second.completed();
    await second.remove();
  });

  it('takes no stack back on which a run still works', async () => {
    const loop = LoopUnderTest.onLentStack();
    await loop.up();
    await loop.passes(await loop.start({ trainer: { total_training_steps: 100_000 } }), 1);
    await loop.remove();
    expect(readStack(loop.home)).toBeUndefined();
    expect(borrowed().home).not.toBe(loop.home);
  });

  it('gives nobody a stack of which a process has died', async () => {
    const first = borrowed();
    await kill(processOf(await ensureStack({ home: first.home, workers: onePool }), 'local-1'));
    // The supervisor has started another one by now, or will: the stack is not what it was.
    first.giveBack();
    await expect.poll(() => readStack(first.home)?.children.find(({ name }) => name === 'local-1')?.restarts).toBe(1);
    expect(borrowed().home).not.toBe(first.home);
  });
});

it('nothing is lent without the runner', () => {
  delete process.env[lentHomesVariable];
  try {
    expect(borrowHome('user', toolchain)).toBeUndefined();
  } finally {
    if (outer !== undefined) process.env[lentHomesVariable] = outer;
  }
});
