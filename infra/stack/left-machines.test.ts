import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { leftMachines, LeftMachines } from './left-machines.ts';
import { makeStackFolder } from './state.ts';

const machine = (host: string, code = 'TokenRefused') => ({ pool: 'lab', host, code, message: `${host} was refused` });

describe('machines that were refused', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'petrel-left-'));
    makeStackFolder(home);
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
    rmSync(home, { recursive: true });
  });

  it('are written down within a second, equal ones as one with their number, the newest first', () => {
    const left = new LeftMachines(home);
    left.note(machine('a'));
    for (let i = 0; i < 5_000; i++) left.note(machine('b'));
    expect(leftMachines(home)).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect(leftMachines(home)).toMatchObject([
      { host: 'a', times: 1 },
      { host: 'b', times: 5_000 },
    ]);
    left.note(machine('b'));
    left.note(machine('b', 'NoBuild'));
    vi.advanceTimersByTime(1_000);
    expect(leftMachines(home).map(({ host, code, times }) => [host, code, times])).toEqual([
      ['b', 'TokenRefused', 5_001],
      ['b', 'NoBuild', 1],
      ['a', 'TokenRefused', 1],
    ]);
  });

  it('are at most twenty, however many names they claim', () => {
    const left = new LeftMachines(home);
    for (let i = 0; i < 1_000; i++) left.note(machine(`h${i}`));
    left.write();
    expect(leftMachines(home)).toHaveLength(20);
  });

  it('are shown for a day', () => {
    const left = new LeftMachines(home);
    left.note(machine('a'));
    left.write();
    expect(leftMachines(home, Date.now() + 25 * 3600 * 1000)).toEqual([]);
  });
});
