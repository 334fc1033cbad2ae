/** A user's scorer behind the walls of a sandbox: `reward.sandbox`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { processesWith, testPlaces } from '../sandbox/places.test-support.ts';
import { createScorerHost, type ScorerHost } from './scorer-host.ts';

const places = testPlaces();
const folder = mkdtempSync(join(tmpdir(), 'petrel-walled-'));
afterAll(() => rmSync(folder, { recursive: true }));
const hosts: ScorerHost[] = [];
afterEach(() => Promise.all(hosts.splice(0).map((host) => host.close())));

const typescript = `
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
const tried = async (work: () => unknown): Promise<string> => {
  try { return String(await work()); } catch (error) { return (error as { code?: string; cause?: { code?: string } }).code ?? (error as any).cause?.code ?? 'Error'; }
};
export async function computeScore({ solutionStr, groundTruth }: { solutionStr: string; groundTruth: any }, settings: { key: string }) {
  if (solutionStr === 'hang') for (;;);
  if (solutionStr === 'eat') for (const all: Buffer[] = [];;) all.push(Buffer.alloc(1e7, 1));
  console.log('looking around');
  return {
    score: 0.5, key: settings.key === process.env.JUDGE_KEY, uid: process.getuid!(), home: process.env.HOME!, secret: String(process.env.SECRET_OF_THE_WORKER),
    net: await tried(() => fetch(groundTruth.url).then((r) => r.text())), read: await tried(() => readdirSync(groundTruth.home)),
    write: await tried(() => writeFileSync('/x', '')), own: await tried(() => writeFileSync('/tmp/x', '')), shadow: await tried(() => readFileSync('/etc/shadow')),
  };
}
`;

const python = `
import json, os, urllib.request
def tried(work):
    try: return str(work())
    except OSError as error: return type(getattr(error, "reason", error)).__name__
def compute_score(data_source, solution_str, ground_truth, extra_info, key):
    if solution_str == "hang":
        while True: pass
    x = []
    while solution_str == "eat": x.append(bytearray(10**7))
    print("looking around")
    return {"score": 0.5, "key": key == os.environ["JUDGE_KEY"], "uid": os.getuid(), "home": os.environ["HOME"], "secret": str(os.environ.get("SECRET_OF_THE_WORKER")),
      "net": tried(lambda: urllib.request.urlopen(ground_truth["url"], timeout=2).read()), "read": tried(lambda: os.listdir(ground_truth["home"])),
      "write": tried(lambda: open("/x", "w")), "own": tried(lambda: open("/tmp/x", "w").close()), "shadow": tried(lambda: open("/etc/shadow"))}
`;

describe.skipIf(places.length === 0).each([
  ['TypeScript', 'scorer.ts', typescript],
  ['Python', 'scorer.py', python],
])('a sandboxed %s scorer', (_, name, source) => {
  const path = join(folder, name);

  function host(memoryMb = 300): ScorerHost {
    writeFileSync(path, source);
    const created = createScorerHost(
      {
        type: 'module',
        path,
        exportName: 'compute_score',
        sandbox: true,
        settings: { key: 'judge me' },
        secrets: { JUDGE_KEY: 'judge me' },
      },
      { timeoutMs: 8_000, memoryMb, concurrency: 1 },
    );
    hosts.push(created);
    return created;
  }

  it('scores with its settings and secrets, and reaches neither network, nor home, nor files', async () => {
    let asked = 0;
    const server = createServer((_request, response) => {
      asked += 1;
      response.end('reached');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
    process.env['SECRET_OF_THE_WORKER'] = 'a secret of the worker';
    const printed: string[] = [];
    const [outcome] = await host().score(
      [{ dataSource: 'test', solutionStr: '', groundTruth: { url, home: join(homedir(), '.ssh') } }],
      { onPrint: (line) => printed.push(line) },
    );
    delete process.env['SECRET_OF_THE_WORKER'];
    server.close();
    expect(asked).toBe(0);
    expect(printed).toEqual(['looking around']);
    expect(outcome).toMatchObject({ ok: true, score: 0.5 });
    const { columns } = outcome as { columns: Record<string, unknown> };
    expect(columns).toMatchObject({
      key: true,
      uid: 1000,
      home: '/tmp',
      secret: expect.stringMatching(/undefined|None/),
    });
    for (const wall of ['net', 'read', 'write', 'shadow'])
      expect([wall, columns[wall]]).toEqual([wall, expect.stringMatching(/^(E[A-Z]+|\w*Error)$/)]);
    expect(columns['own']).toMatch(/undefined|None/);
  });

  it('is ended for its time and its memory, and the next samples are scored', async () => {
    const input = (solutionStr: string) => ({
      dataSource: 'test',
      solutionStr,
      groundTruth: { url: 'http://127.0.0.1:9/', home: '/' },
    });
    const outcomes = await host().score(['', 'hang', '', 'eat', ''].map(input));
    expect(outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.code))).toEqual([
      'ok',
      'timeout',
      'ok',
      expect.stringMatching(/memory|crashed/),
      'ok',
    ]);
    await Promise.all(hosts.splice(0).map((one) => one.close()));
    expect(processesWith(path)).toBe(0);
  });

  it('that cannot be loaded is refused with its reason and its place', async () => {
    writeFileSync(path, name.endsWith('.ts') ? 'export const x: = 1;' : 'def (:');
    const created = createScorerHost(
      { type: 'module', path, exportName: 'compute_score', sandbox: true },
      { timeoutMs: 3_000, memoryMb: 300, concurrency: 1 },
    );
    hosts.push(created);
    await expect(created.ready()).rejects.toThrow(name.endsWith('.ts') ? /scorer\.ts:1/ : /scorer\.py:1/);
  });
});

it('a scorer that is not sandboxed still has the worker’s network', async () => {
  const server = createServer((_request, response) => response.end('reached')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  writeFileSync(
    join(folder, 'open.js'),
    'export const computeScore = async ({ groundTruth }) => (await (await fetch(groundTruth)).text()) === "reached";',
  );
  const host = createScorerHost(
    { type: 'module', path: join(folder, 'open.js'), exportName: 'compute_score' },
    { timeoutMs: 9_000, memoryMb: 300, concurrency: 1 },
  );
  hosts.push(host);
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
  expect(await host.score([{ dataSource: 'test', solutionStr: '', groundTruth: url }])).toMatchObject([
    { ok: true, score: 1 },
  ]);
  server.close();
});
