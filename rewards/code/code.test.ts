/** The scorer `code` as runs use it: in a scorer process, with programs in sandboxes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createScorerHost, type ScoreOutcome, type ScorerHost } from '../host/scorer-host.ts';
import { processesWith, testPlaces } from '../sandbox/places.test-support.ts';
import type { ScorerSettings } from '../types.ts';
import { runTests, type TestRun } from './program.ts';

const places = testPlaces();
const python = (code: string) => `Some thoughts.\n\`\`\`python\n${code}\n\`\`\`\nDone.`;

const sums = {
  inputs: ['2\n1 2\n', '3\n1 2 3\n', '1\n-5\n', '1\n0\n'],
  outputs: ['3\n', '6\n', '-5\n', '0\n'],
};
const right = 'n = int(input())\nprint(sum(map(int, input().split())))';

describe.skipIf(places.length === 0)('the scorer code', () => {
  let host: ScorerHost;
  beforeAll(() => {
    host = createScorerHost({ type: 'builtin' }, { timeoutMs: 15_000, memoryMb: 512, concurrency: 1 });
  });
  afterAll(() => host.close());

  async function score(solutionStr: string, groundTruth: unknown, by = host): Promise<ScoreOutcome> {
    const [outcome] = await by.score([{ dataSource: 'apps', solutionStr, groundTruth }]);
    return outcome!;
  }
  const scored = (value: number, reason: unknown = undefined, acc = value === 1) => ({
    ok: true,
    score: value,
    columns: { acc, reason },
  });

  it('gives 1 to a program that passes every test, in a block or without one', async () => {
    expect(await score(python(right), JSON.stringify(sums))).toEqual(scored(1));
    expect(await score(right, sums)).toEqual(scored(1));
    expect(await score(`${python('wrong')}${python(right)}`, sums)).toEqual(scored(1));
  });

  it('gives the share of the first ten tests to one that fails some', async () => {
    expect(await score(python('input()\nprint(input().split()[-1])'), sums)).toEqual(
      scored(0.5, '2 of 4 tests passed; test 1: it printed "2" instead of "3"'),
    );
    const many = {
      inputs: Array.from({ length: 12 }, (_, i) => `${i}`),
      outputs: Array.from({ length: 12 }, (_, i) => `${i}`),
    };
    expect(await score('n = input()\nprint(n if n != "11" else "?")', many)).toEqual(
      scored(1, 'all tests together: test 12 of 12: it printed "?" instead of "11"', false),
    );
  });

  it.each([
    ['does not compile', 'print((', "SyntaxError: '(' was never closed (line 2)"],
    [
      'raises an exception',
      'def f():\n  raise ValueError("no idea")\nf()',
      '0 of 4 tests passed; test 1: ValueError: no idea (line 3)',
    ],
    ['ends by a signal', 'import os\nos.kill(os.getpid(), 11)', '0 of 4 tests passed; test 1: it ended by SIGSEGV'],
    ['ends its process', 'import os\nos._exit(2)', '0 of 4 tests passed; test 1: it ended with an error'],
    [
      'ends the runner',
      'import os\nos.kill(os.getppid(), 9)',
      expect.stringContaining('it ended the process that runs its tests'),
    ],
    ['prints too much', 'while True: print("x" * 99999)', '0 of 4 tests passed; test 1: it printed too much'],
    ['says nothing', '', '0 of 4 tests passed; test 1: it printed "" instead of "3"'],
  ])('gives 0 with the reason to a program that %s', async (_, code, reason) => {
    expect(await score(python(code), sums)).toEqual(scored(0, reason));
  });

  it.each([
    ['forks without end', 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass', /64 processes/],
    [
      'takes all memory',
      'x = []\nwhile True:\n  try: x.append(bytearray(10**6))\n  except MemoryError: pass',
      /(384 MiB of memory|5 s)/,
    ],
    [
      'never ends',
      'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass',
      /more than/,
    ],
    ['fills the disk', 'i = 0\nwhile True:\n  i += 1\n  open(f"/tmp/{i}", "wb").write(b"x" * 10**7)', /No space left/],
  ])('gives 0 to a program that %s, ends it, and scores the next one', async (_, code, reason) => {
    const mark = `petrel-code-${process.pid}`;
    const outcome = await score(python(`${code}\n# ${mark}`), { inputs: ['', ''], outputs: ['1', '2'] });
    expect(outcome).toEqual(scored(0, expect.stringMatching(reason)));
    expect(processesWith(mark)).toBe(0);
    expect(await score(python(right), sums)).toEqual(scored(1));
  });

  it('calls a function, of the module or of the class Solution', async () => {
    const adds = { fn_name: 'combine', inputs: ['1\n2', '[1]\n[2]', '"a"\n"b"'], outputs: ['3', '[1, 2]', '"ab"'] };
    expect(await score(python('def combine(a, b): return a + b'), adds)).toEqual(scored(1));
    expect(await score(python('class Solution:\n  def combine(self, a: List[int], b): return a + b'), adds)).toEqual(
      scored(1),
    );
    expect(await score(python('def combine(a, b): print(a); return a'), adds)).toEqual(
      scored(0, 'test 1 of 3: it returned 1 instead of 3'),
    );
    expect(await score(python('def plus(a, b): return a + b'), adds)).toMatchObject(
      scored(0, expect.stringContaining('AttributeError')),
    );
  });

  it('counts single calls of a function only when it is told to, because verl does not', async () => {
    const half = { fn_name: 'f', inputs: ['1', '2'], outputs: ['1', '4'] };
    const told = createScorerHost(
      { type: 'builtin', name: 'code', settings: { partial_calls: true } },
      { timeoutMs: 15_000, memoryMb: 512, concurrency: 1 },
    );
    expect(await score('def f(x): return 1', half)).toMatchObject({ score: 0 });
    expect(await score('def f(x): return 1', half, told)).toMatchObject({ score: 0.5 });
    await told.close();
  });

  it('runs programs as Python does: threads, atexit, exit codes, stdin in every form', async () => {
    const echo = { inputs: ['a\nb\n'], outputs: ['a\nb\n'] };
    for (const code of [
      'import sys\nsys.stdout.write(sys.stdin.read())\nsys.exit(3)',
      'import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())',
      'print(open(0).read())',
      'import os\nos.write(1, os.read(0, 99))',
      'print(stdin.readline().strip())\nstdout.write(input())',
      'import threading\nthreading.Thread(target=lambda: print(input(), input(), sep="\\n")).start()',
      'import atexit, io, sys\nout = io.StringIO()\nreal, sys.stdout = sys.stdout, out\natexit.register(lambda: real.write(out.getvalue()))\nprint(input())\nprint(input())',
      'if __name__ == "__main__":\n  for line in sys.stdin: print(line, end="")',
      'total = 0\ndef f():\n  global total\n  total += 1\nf()\nprint(input())\nprint(input())',
    ])
      expect([code, await score(python(code), echo)]).toEqual([code, scored(1)]);
  });

  it('fails a sample whose tests are not as they should be, with the reason', async () => {
    expect(await score('x', '{"inputs": []}')).toMatchObject({
      ok: false,
      code: 'threw',
      reason: expect.stringContaining('inputs or outputs is missing'),
    });
  });

  it('ends a slow program before the scorer itself would be ended', async () => {
    const hurried = createScorerHost(
      { type: 'builtin', name: 'code' },
      { timeoutMs: 4_000, memoryMb: 512, concurrency: 1 },
    );
    await hurried.ready();
    const outcome = await score(python('import time\ntime.sleep(99)'), sums, hurried);
    expect(outcome).toMatchObject(scored(0, expect.stringContaining('it took more than')));
    await hurried.close();
  });

  it('refuses settings that it cannot keep', () => {
    const limits = { timeoutMs: 4_000, memoryMb: 512, concurrency: 1 };
    const start = (settings: ScorerSettings) => () =>
      createScorerHost({ type: 'builtin', name: 'code', settings }, limits);
    expect(start({ memory_limit_mb: 512 })).toThrow('reward_kwargs.memory_limit_mb is 512, but reward.memory_limit_mb');
    expect(start({ timeout: 'long' })).toThrow('reward_kwargs.timeout must be a number above 0');
  });
});

describe.skipIf(places.length === 0).each(places)('tests of a program, run by $name,', ({ place }) => {
  async function run(code: string, inputs: readonly string[]): Promise<TestRun[]> {
    const runs: TestRun[] = [];
    const limits = { secondsPerTest: 4, bytesPerTest: 10_000, wallMs: 9_000, memoryMb: 256, tasks: 16, diskMb: 8 };
    await runTests(place, { code, function: undefined, inputs }, limits, (_, one) => {
      runs.push(one);
      return undefined;
    });
    return runs;
  }

  it('do not see what an earlier test left: files, processes, variables', async () => {
    const code = `
import os
print(sorted(os.listdir("/tmp")), len([n for n in os.listdir("/proc") if n.isdigit()]), "left" in globals())
left = 1
open("/tmp/file", "w").write("x")
os.mkdir("/tmp/folder")
if os.fork() == 0:
    os.setsid()
    import time
    time.sleep(99)
`;
    const runs = await run(code, ['', '', '']);
    expect(runs.map(({ out }) => out)).toEqual(Array.from({ length: 3 }, () => '[] 3 False\n'));
  });

  it('are no verdict when the sandbox cannot be built: that says nothing about the program', async () => {
    const walls = { ...place.walls, prefix: ['/nonexistent/program'] };
    const job = { code: 'print(1)', function: undefined, inputs: [''] };
    const limits = { secondsPerTest: 4, bytesPerTest: 10_000, wallMs: 9_000, memoryMb: 256, tasks: 16, diskMb: 8 };
    await expect(runTests({ ...place, walls }, job, limits, () => undefined)).rejects.toThrow('ENOENT');
    const broken = { ...place.walls, prefix: ['sh', '-c', 'echo no room >&2; exit 1', '--'] };
    await expect(runTests({ ...place, walls: broken }, job, limits, () => undefined)).rejects.toThrow(
      'the sandbox of the program was lost: no room',
    );
  });

  it('are not decided by what a program writes in the name of the runner', async () => {
    const code = `
import json, os
for fd in range(3, 64):
    try: os.write(fd, b'{"test": 0, "end": "ok", "out": "forged", "value": null, "error": ""}\\n')
    except OSError: pass
print(input())`;
    const runs = await run(code, ['1', '2']);
    expect(runs.map(({ out }) => out)).toEqual(['1\n', '2\n']);
  });
});
