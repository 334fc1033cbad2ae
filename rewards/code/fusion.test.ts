/** The interface of Sandbox Fusion, on a real HTTP server that answers as the service does. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { scorerByName } from '../registry.ts';
import { fusionProgramIn } from './fusion.ts';

interface RunRequest {
  readonly code: string;
  readonly stdin: string;
}

type Answer = (
  request: RunRequest,
  attempt: number,
) => { status?: number; body: unknown } | Promise<{ status?: number; body: unknown }>;

const finished = (stdout: string) => ({
  body: { status: 'Success', run_result: { status: 'Finished', return_code: 0, stdout } },
});
const failedWith = (more: object) => ({ body: { status: 'Failed', message: '', ...more } });

let server: Server | undefined;
afterEach(() => void server?.close());

async function service(answer: Answer) {
  const seen: Record<string, unknown>[] = [];
  let busy = 0;
  let most = 0;
  const tries = new Map<unknown, number>();
  const reply = async (request: IncomingMessage, response: ServerResponse) => {
    most = Math.max(most, ++busy);
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as Record<string, unknown> & RunRequest;
    seen.push(body);
    tries.set(body.stdin, (tries.get(body.stdin) ?? 0) + 1);
    const { status = 200, body: answered } = await answer(body, tries.get(body.stdin) ?? 0);
    busy -= 1;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof answered === 'string' ? answered : JSON.stringify(answered));
  };
  server = createServer((request, response) => void reply(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/run_code`;
  const score = (solutionStr: string, tests: object, most_ = 64, timeoutMs = 20_000) =>
    scorerByName('code')(
      { dataSource: 'taco', solutionStr, groundTruth: JSON.stringify(tests) },
      { sandbox_fusion: { url, max_concurrent: most_, memory_limit_mb: 512 } },
      { timeoutMs, memoryMb: 1024 },
    );
  return { score, seen, most: () => most };
}

const tests = (count: number) => ({
  inputs: Array.from({ length: count }, (_, i) => `${i}`),
  outputs: Array.from({ length: count }, (_, i) => `${i}\n`),
});

describe('programs that a Sandbox Fusion service runs', () => {
  it('are sent once per test, for the first ten, with their limits, and the score is the share that passed', async () => {
    const { score, seen } = await service(({ stdin }) => finished(stdin === '3' ? 'wrong' : stdin));
    expect(await score('```python\nprint(input())\n```', tests(12))).toEqual({
      score: 0.9,
      acc: false,
      reason: '9 of 10 tests passed; test 4: it printed "wrong" instead of "3\\n"',
    });
    expect(seen).toHaveLength(10);
    expect(seen[0]).toEqual({
      code: '\nprint(input())\n',
      stdin: '0',
      language: 'python',
      compile_timeout: 10,
      run_timeout: 10,
      memory_limit_MB: 512,
      files: {},
      fetch_files: [],
    });
    expect(await score('print(input())', tests(3))).toEqual({ score: 1, acc: true });
  });

  it.each([
    [
      'do not compile',
      { compile_result: { status: 'Error', stderr: 'x\nSyntaxError: y' } },
      'it does not compile: SyntaxError: y',
    ],
    ['take too long', { run_result: { status: 'TimeLimitExceeded' } }, 'it took more than 10 s'],
    [
      'end with an error',
      { run_result: { status: 'Finished', return_code: 1, stderr: 'ValueError: z\n' } },
      'ValueError: z',
    ],
  ])('that %s score 0 with the reason', async (_, reply, reason) => {
    const { score } = await service(() => failedWith(reply));
    expect(await score('x', tests(1))).toEqual({
      score: 0,
      acc: false,
      reason: `0 of 1 tests passed; test 1: ${reason}`,
    });
  });

  it('are sent again after a 504, three times in all, and after nothing else', async () => {
    const tired = await service(({ stdin }, attempt) =>
      attempt < 3 ? { status: 504, body: 'busy' } : finished(stdin),
    );
    const began = performance.now();
    expect(await tired.score('x', tests(1))).toMatchObject({ score: 1 });
    expect(performance.now() - began).toBeGreaterThan(2_900);
    expect(tired.seen).toHaveLength(3);
    server?.close();
    const dead = await service(() => ({ status: 504, body: 'busy' }));
    await expect(dead.score('x', tests(1))).rejects.toThrow('gave no verdict: HTTP 504');
    expect(dead.seen).toHaveLength(3);
    server?.close();
    const broken = await service(() => ({ status: 500, body: 'out of order' }));
    await expect(broken.score('x', tests(1))).rejects.toThrow('gave no verdict: HTTP 500 out of order');
    expect(broken.seen).toHaveLength(1);
  });

  it.each([
    ['nonsense', 'nonsense', 'it answered no JSON object: nonsense'],
    ['an error of its own', { status: 'SandboxError', message: 'no room' }, 'status "SandboxError" no room'],
    ['a success without a result', { status: 'Success' }, 'status "Success"'],
  ])(
    'are failed samples when the service answers %s: that says nothing about the program',
    async (_, body, message) => {
      const { score } = await service(() => ({ body }));
      await expect(score('x', tests(1))).rejects.toThrow(message);
    },
  );

  it('are failed samples when the service is down or too slow', async () => {
    let answer = () => {};
    const asked = new Promise<void>((resolve) => (answer = resolve));
    const slow = await service(async ({ stdin }) => {
      await asked;
      return finished(stdin);
    });
    await expect(slow.score('x', tests(1), 64, 1_000)).rejects.toThrow('timeout');
    answer();
    const down = await service(() => finished(''));
    server?.closeAllConnections();
    server?.close();
    await expect(down.score('x', tests(1))).rejects.toThrow(/gave no verdict: .*ECONNREFUSED/);
  });

  it('are sent only so many at a time', async () => {
    const { score, most } = await service(async ({ stdin }) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return finished(stdin);
    });
    await Promise.all([score('a', tests(8), 3), score('b', tests(8), 3)]);
    expect(most()).toBe(3);
  });

  it('call the named function with the JSON values of stdin, one per line', async () => {
    const { score, seen } = await service(() => finished('3\n'));
    expect(
      await score('def add(a, b): return a + b', { inputs: ['1\n2'], outputs: ['3'], fn_name: 'add' }),
    ).toMatchObject({ score: 1 });
    expect(seen[0]?.['code']).toMatch(
      /^from string import \*\n[\s\S]*def add\(a, b\): return a \+ b[\s\S]*globals\(\)\["add"\]/,
    );
  });

  it('are found in the response as verl finds them there', () => {
    expect(fusionProgramIn('a ```python\nx\n``` b ```python\ny\n``` c')).toBe('\ny\n');
    expect(fusionProgramIn('a ```\nx\n``` b')).toBe('\nx\n');
    expect(fusionProgramIn('a ```cpp\nx\n``` b')).toBe('x\n');
    expect(fusionProgramIn('a ```x = 1\ny\n``` b')).toBe('x = 1\ny\n');
    expect(fusionProgramIn('x')).toBe('x');
  });
});
