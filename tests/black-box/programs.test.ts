/** Whole runs with code that nobody has read: programs of the model, and a scorer behind walls. */
import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const canRun =
  Boolean(process.env['PETREL_NEEDS_SANDBOX']) || spawnSync('bwrap', ['--ro-bind', '/', '/', 'true']).status === 0;

interface Sample {
  readonly dataSource: string;
  readonly response: string;
  readonly reward: number | null;
  readonly columns: Readonly<Record<string, number | string | null>>;
}

const user = PetrelUser.onLentStack();
let server: Server;
beforeAll(async () => {
  // A scorer that is ended while it reads resets its connection.
  server = createServer((socket) => socket.on('error', () => undefined).end('hello')).on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await user.remove();
  await new Promise((resolve) => server.close(resolve));
});

async function samplesOf(name: string): Promise<Sample[]> {
  const ran = await user.petrel('run', `${name}.yaml`, '--name', name, '--wait', '--json');
  expect(ran.code, `${ran.err}${ran.out}`).toBe(0);
  expect((await user.petrel('ledger', 'verify', name)).code).toBe(0);
  return (await user.petrel('samples', name, '--limit', '1000', '--json')).json<Sample[]>();
}

it.skipIf(!canRun)('a run scores programs by their tests, beside rows of another scorer', async () => {
  // The base answers with digits: a program that prints nothing, unless it is no program at all.
  const tests = JSON.stringify({ inputs: ['', ''], outputs: ['', '1'] });
  const row = (data_source: string, ground_truth: string, index: number) =>
    JSON.stringify({
      data_source,
      prompt: `${10 + index}+${20 - index}=`,
      reward_model: { style: 'rule', ground_truth },
      extra_info: { index },
    });
  const rows = Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? row('taco', tests, i) : row('exact', '30', i)));
  user.write('programs.jsonl', rows.map((one) => `${one}\n`).join(''));
  user.recipe('programs.yaml', {
    data: { train_files: './programs.jsonl' },
    reward: { scorer: null, num_workers: 2 },
  });
  const samples = await samplesOf('programs');
  expect(samples.length).toBe(32); // of the last iteration
  const programs = samples.filter(({ dataSource }) => dataSource === 'taco');
  expect(programs.length).toBeGreaterThan(0);
  for (const { reward, response, columns } of programs) {
    const compiles = spawnSync('python3', ['-c', 'import sys; compile(sys.stdin.read(), "p", "exec")'], {
      input: response,
    });
    expect([reward, columns['acc']], response).toEqual([compiles.status === 0 ? 0.5 : 0, 0]);
    const half = '1 of 2 tests passed; test 2: it printed "" instead of "1"';
    expect(columns['reason']).toEqual(compiles.status === 0 ? half : expect.stringContaining('Error'));
  }
  expect(new Set(samples.map(({ reward }) => reward)).has(0.5)).toBe(true);
  expect((await user.petrel('samples', 'programs', '--limit', '1000')).out).toContain('reason 1 of 2 tests passed');
});

const nosy = (port: number, secrets: readonly string[]) => `
import os, socket

def leaks():
    try:
        socket.create_connection(("127.0.0.1", ${port}), 2)
        yield "network"
    except OSError:
        pass
    for path in (${JSON.stringify(secrets)}):
        try:
            yield path + open(path).read()
        except OSError:
            pass
    try:
        open(os.path.dirname(__file__) + "/written", "w").close()
        yield "its folder is writable"
    except OSError:
        pass

def compute_score(data_source, solution_str, ground_truth, extra_info, **settings):
    found = list(leaks())
    open("/tmp/own", "a").write("x")
    return {"score": float(solution_str.strip() == ground_truth), "leaks": len(found), "found": ", ".join(found)}
`;

it.skipIf(!canRun).each([true, false])(
  'a scorer of the user with reward.sandbox: %s sees what is outside only without it',
  { tags: ['long'] },
  async (sandbox) => {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const name = sandbox ? 'walled' : 'bare';
    user.write('nosy.py', nosy(port, [user.write('secret.txt', 'key'), '/etc/passwd']));
    user.recipe(`${name}.yaml`, {
      reward: { scorer: null, custom_reward_function: { path: './nosy.py' }, sandbox, timeout: 20 },
      trainer: { total_training_steps: 1 },
    });
    const samples = await samplesOf(name);
    expect(samples.length).toBe(32);
    const found = new Set(samples.map(({ columns }) => columns['found'] ?? ''));
    if (sandbox) expect([...found]).toEqual(['']);
    else expect([...found].join()).toContain('network');
  },
);
