/** Every system call of a sandboxed program is in the table of native/guard/calls.h, or is answered with ENOSYS. */
import { describe, expect, it } from 'vitest';
import { attemptsProgram, type Attempt, callTable } from './calls.test-support.ts';
import type { SandboxLimits } from './limits.ts';
import { testPlaces } from './places.test-support.ts';
import { runInSandbox } from './run.ts';

const limits: SandboxLimits = {
  wallMs: 100_000,
  cpuMs: 100_000,
  memoryMb: 256,
  tasks: 64,
  outputBytes: 1_000_000,
  diskMb: 16,
  openFiles: 64,
};
const table = callTable();
const places = testPlaces();
/** Numbers beyond the last one of any kernel (Linux 6.18: 469), and where other tables of numbers begin. */
const numbers = [...range(0, 600), 1_000, 4_095, 65_535, 2 ** 30 - 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];
const x32 = range(2 ** 30, 2 ** 30 + 600);
/** Calls that wait for ever when all their arguments are 0. */
const blocking = new Set(['select', 'pause', 'pselect6', 'ppoll']);
/**
 * Calls that newer kernels answer before they ask a filter: uretprobe (Linux 6.11) and uprobe (6.18). They belong to
 * probes, which only the machine's root can set, and do nothing anywhere else.
 */
const unfiltered = new Map([
  [335, 'signal 4'],
  [336, 'ENXIO'],
]);

/** Arguments of each call that has a rule, and what comes of them. What the rule lets through, the kernel answers. */
const forms: readonly { readonly name: string; readonly tried: readonly (readonly [readonly number[], string])[] }[] = [
  form(
    'mmap',
    [[0, 4096, 3, 0x22, -1, 0], 'done'],
    [[0, 4096, 3, 0x21, -1, 0], 'done'],
    [[0, 4096, 3, 0x40022, -1, 0], 'EINVAL'],
  ),
  form('ioctl', [[0, 0x5451], 'done'], [[0, 0x5450], 'done'], [[0, 2, 0], 'ENOTTY'], [[0, 0x5412, 0], 'ENOTTY']),
  form('madvise', [[0, 0, 4], 'done'], [[0, 0, 12], 'EINVAL'], [[0, 0, 100], 'EINVAL']),
  form(
    'socket',
    [[1, 1, 0], 'done'],
    ...[2, 10, 16, 17, 38, 40].map((family) => refused([family, 1, 0], 'EAFNOSUPPORT')),
  ),
  form('socketpair', [[1, 1, 0, 0], 'EFAULT'], [[2, 1, 0, 0], 'EAFNOSUPPORT']),
  form(
    'setsockopt',
    [[0, 1, 2, 0, 4], 'EFAULT'],
    ...[7, 8, 26, 32, 50].map((option) => refused([0, 1, option, 0, 4], 'ENOPROTOOPT')),
    [[0, 6, 2, 0, 4], 'ENOPROTOOPT'],
  ),
  form(
    'clone',
    [[17], 'done'],
    ...[0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000, 0x20000, 0x400].map((flag) =>
      refused([flag + 17], 'EINVAL'),
    ),
  ),
  form(
    'fcntl',
    [[0, 1], 'done'],
    [[0, 3], 'done'],
    ...[10, 37, 38, 1024, 1026, 1031, 1033].map((command) => refused([0, command, 0], 'EINVAL')),
  ),
  form('setpriority', [[0, 0, 19], 'done'], [[0, 1, 19], 'EPERM'], [[1, 0, 19], 'EPERM'], [[2, 0, 19], 'EPERM']),
  form(
    'prctl',
    [[3], 'done'],
    [[39], 'done'],
    ...[4, 22, 35, 36, 67, 0x53564d41].map((option) => refused([option, 1], 'EINVAL')),
  ),
  form('arch_prctl', [[0x1003, 0], 'EFAULT'], [[0x1011, 0], 'EINVAL'], [[0x5001, 1], 'EINVAL']),
  form('sched_setaffinity', [[0, 0, 0], 'EINVAL'], [[1, 0, 0], 'EPERM']),
  form('prlimit64', [[0, 7, 0, 0], 'done'], [[1, 7, 0, 0], 'EPERM']),
  form(
    'close_range',
    [[100, 101, 0], 'done'],
    [[100, 101, 4], 'done'],
    [[100, 101, 2], 'EINVAL'],
    [[100, 101, 6], 'EINVAL'],
  ),
];

type Tried = readonly [readonly number[], string];

function form(name: string, ...tried: readonly Tried[]): { readonly name: string; readonly tried: readonly Tried[] } {
  return { name, tried };
}

function refused(args: readonly number[], error: string): Tried {
  return [args, error];
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

it('each call is in the table once, in order, and with a reason', () => {
  expect(table.length).toBeGreaterThan(150);
  expect(table.map(({ number }) => number)).toEqual(
    [...new Set(table.map(({ number }) => number))].sort((a, b) => a - b),
  );
  expect(table.filter(({ why }) => why.length < 'waits'.length)).toEqual([]);
  expect(table.filter(({ kind, more }) => (kind === 'CALL') !== (more === undefined))).toEqual([]);
});

describe.skipIf(places.length === 0).each(places)('a program, run by $name,', ({ place: { walls, python } }) => {
  async function outcomes(attempts: readonly Attempt[]): Promise<readonly string[]> {
    const { end, stdout, stderr } = await runInSandbox(walls, {
      command: [python.program, '-s', '-B', '-c', attemptsProgram(attempts)],
      stdin: '',
      env: { HOME: '/tmp' },
      binds: python.binds,
      limits,
    });
    expect({ end, stderr }).toEqual({ end: { type: 'exit', code: 0 }, stderr: '' });
    return JSON.parse(stdout) as string[];
  }

  it('gets ENOSYS for every number that is not in the table, and no call of the table is refused as a whole', async () => {
    const byNumber = new Map(table.map((entry) => [entry.number, entry]));
    const attempts = numbers.map((number) => ({ number, blocks: blocking.has(byNumber.get(number)?.name ?? '') }));
    const found = await outcomes(attempts);
    const wrong = numbers.flatMap((number, index) => {
      const entry = byNumber.get(number);
      const outcome = found[index] ?? '';
      const isRight =
        entry === undefined
          ? outcome === 'ENOSYS' || outcome === unfiltered.get(number)
          : outcome !== 'ENOSYS' && (entry.kind !== 'ANSWER' || outcome === entry.more);
      return isRight ? [] : [`${number} ${entry?.name ?? ''}: ${outcome}`];
    });
    expect(wrong).toEqual([]);
  });

  it('gets ENOSYS for every call of x32 and of 32-bit programs', async () => {
    const found = await outcomes([
      ...x32.map((number) => ({ number })),
      ...range(0, 600).map((number) => ({ number, from32: true })),
    ]);
    expect([...new Set(found.slice(0, x32.length))]).toEqual(['ENOSYS']);
    // A kernel without 32-bit programs ends the process.
    expect(['ENOSYS', 'signal 11']).toEqual(expect.arrayContaining([...new Set(found.slice(x32.length))]));
  });

  it.each(forms)('is let through with $name in the forms that it needs only', async ({ name, tried }) => {
    const number = table.find((entry) => entry.name === name)?.number ?? -1;
    const found = await outcomes(tried.map(([args]) => ({ number, args })));
    expect(tried.map(([args], index) => [args, found[index]])).toEqual(tried);
  });
});

it('forms of every call that has a rule are tried', () => {
  expect(forms.map(({ name }) => name).sort()).toEqual(
    table
      .filter(({ kind }) => kind === 'FORMS')
      .map(({ name }) => name)
      .sort(),
  );
});
