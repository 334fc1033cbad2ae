/** Runs whose scores come from an HTTP endpoint: two reward workers, and a real server that counts what it sees. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { parseScoreTable } from '../../core/wire/score-table.ts';
import { poll } from '../../infra/poll.ts';
import { getJsonBlob } from '../../log/objects/blobs.ts';
import { readRecord } from '../../log/objects/records.ts';
import { ChatServer, says } from '../../rewards/endpoint/chat-server.test-support.ts';
import type { Answering, SeenRequest } from '../../rewards/endpoint/chat-server.test-support.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';

const secret = 'sk-test-0123456789-never-to-be-stored';
process.env['JUDGE_KEY'] = secret;

const loop = new LoopUnderTest();
beforeAll(() =>
  loop.up([
    { name: 'train', count: 1, roles: ['trainer', 'rollout'], threads: 1 },
    { name: 'score', count: 2, roles: ['reward'], threads: 1 },
  ]),
);
afterAll(() => loop.remove());

let server: ChatServer;
beforeEach(async () => void (server = await ChatServer.start(judging)));
afterEach(() => server.close());

/** Half of the responses are good: those of even length. */
const judging: Answering = ({ body }: SeenRequest) =>
  says(`I see. Score: ${String(body.messages[0]?.content).length % 2 === 0 ? 0.75 : 0.25}`);

const judged = (endpoint: Tree = {}, more: Tree = {}): Tree => ({
  deterministic: 'replay',
  trainer: { total_training_steps: 1 },
  ...more,
  reward: {
    scorer: 'judge',
    custom_reward_function: { path: null },
    endpoint: { url: server.url, model: 'tiny', api_key: 'env:JUDGE_KEY', ...endpoint },
  },
});
const own = (path: string, reward: Tree = {}, endpoint: Tree = {}): Tree => ({
  deterministic: 'replay',
  trainer: { total_training_steps: 1 },
  reward: {
    custom_reward_function: { path, deterministic: false },
    endpoint: { url: server.url, model: 'tiny', api_key: 'env:JUDGE_KEY', ...endpoint },
    ...reward,
  },
});

/** Every committed result of the run's scoring. */
async function scored({ runId }: StartedRun) {
  const names = await loop.store.children(keys.results(runId));
  const records = await Promise.all(
    names.map((name) => readRecord(loop.store, keys.result(runId, name.replace(/\.json$/, '')), resultRecord)),
  );
  const results = records.flatMap((one) => (one?.record.stage === 'reward' ? [one.record] : []));
  const tables = await Promise.all(
    results.map(async ({ output }) =>
      parseScoreTable(await getJsonBlob(loop.store, runId, String(output['scores'])), 'scores'),
    ),
  );
  return {
    writers: new Set(results.map(({ writer }) => writer.process)),
    scores: tables.flatMap(({ scores }) => scores),
    reasons: tables.flatMap(({ reasons }) => reasons.filter((reason) => reason !== null)),
    texts: tables.flatMap(({ texts = {} }) => Object.entries(texts)),
  };
}

/** Answers nothing until it is opened. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const answering: Answering = async (request, n) => {
    await opened;
    return judging(request, n);
  };
  return { open, answering };
}

const asked = (count: number) => expect.poll(() => server.seen.length).toBeGreaterThanOrEqual(count);

/**
 * A sample that one worker scores ahead while the other takes its reward job, of eight samples, is asked about twice.
 */
function expectAskedAbout(samples: number): void {
  expect(server.seen.length).toBeGreaterThanOrEqual(samples);
  expect(server.seen.length).toBeLessThanOrEqual(samples + 8);
}

describe('the limits of a run', () => {
  it('hold for the requests of two workers together (seed 42)', async () => {
    server.answering = async (request, n) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return judging(request, n);
    };
    // Which worker scores a job follows from the job's id: once in many runs one worker scores all of them.
    for (let runs = 1, both = false; !both && runs <= 5; runs++) {
      server.seen.length = 0;
      const run = await loop.completed(
        judged(
          { max_concurrent: 3 },
          { data: { train_batch_size: 16 }, actor: { ppo_mini_batch_size: 16 }, rollout: { n: 4, max_num_seqs: 8 } },
        ),
      );
      const { writers, scores } = await scored(run);
      both = writers.size === 2;
      expectAskedAbout(64);
      expect(scores).toHaveLength(64);
      expect(new Set(scores)).toEqual(new Set([0.25, 0.75]));
      expect(server.most).toBe(3);
      expect(new Set(server.seen.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${secret}`]));
      if (runs === 5) expect(both, 'both workers have scored').toBe(true);
    }
  });

  it('hold for every minute (seed 42)', { tags: ['long'] }, async () => {
    const run = await loop.start(judged({ max_rpm: 10 }));
    const status = await poll(
      async () => {
        const { state } = (await run.log.status.newest()) ?? {};
        return state === 'completed' || state === 'paused' || state === 'failed' ? state : undefined;
      },
      { everyMs: 200, timeoutMs: patienceMs },
    );
    expect(status).toBe('completed');
    expectAskedAbout(16);
    expect(server.mostWithin(60_000)).toBe(10);
    expect((await scored(run)).scores).toHaveLength(16);
  });

  it('hold for calls of a scorer that asks nothing of petrel: rate_limited (seed 42)', { tags: ['long'] }, async () => {
    const path = join(loop.home, 'calls.txt');
    const scorer = join(loop.inputs.folder, 'calls.mjs');
    writeFileSync(
      scorer,
      `import { appendFileSync } from 'node:fs';
export async function computeScore({ solutionStr }) {
  appendFileSync(${JSON.stringify(path)}, '+');
  await new Promise((resolve) => setTimeout(resolve, 5));
  appendFileSync(${JSON.stringify(path)}, '-');
  return solutionStr.length;
}
`,
    );
    const run = await loop.create(
      own(
        scorer,
        { num_workers: 4, reward_manager: { name: 'rate_limited' } },
        {
          url: null,
          model: null,
          api_key: null,
          max_concurrent: 1,
        },
      ),
    );
    writeFileSync(path, ''); // the start has tried the scorer once
    await loop.drive(run);
    await loop.reaches(run, 'completed');
    expect((await scored(run)).scores).toHaveLength(16);
    // never two at once; a worker that the machine held up may have scored a sample that another one scores again
    expect(readFileSync(path, 'utf8')).toMatch(/^(\+-){16,}$/);
  });
});

describe('an endpoint', () => {
  it('that is not there refuses the run, with a command to paste', async () => {
    await server.close();
    await expect(loop.create(judged())).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringMatching(/^nothing answers at http:\/\/127\.0\.0\.1:\d+\/v1: .*ECONNREFUSED/),
      hint: expect.stringMatching(/curl -sS -H "Authorization: Bearer \$JUDGE_KEY" http:\S+\/models$/),
    });
  });

  it('that goes down pauses the run with its address, and the run goes on when it is back (seed 42)', async () => {
    const run = await loop.create(judged({ max_retries: 1 }));
    await server.close();
    await loop.drive(run);
    const { reason } = await loop.reaches(run, 'paused');
    expect(reason).toMatchObject({
      code: 'EndpointDown',
      message: expect.stringMatching(
        /^http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions gave no answer in 2 tries; the last: .*ECONNREFUSED/,
      ),
      hint: `start the service, then petrel resume ${run.runId}`,
    });
    expect((await scored(run)).scores).toEqual([]);
    await server.listen();
    await loop.resume(run);
    await loop.reaches(run, 'completed');
    expect((await scored(run)).scores).toHaveLength(16);
    expect(await loop.said(run, /asking again in .* s, 1 of 1/)).not.toEqual([]);
  });

  it('that answers nonsense, or refuses the key, pauses the run (seed 42)', { tags: ['long'] }, async () => {
    server.answering = () => ({ body: '<html>login</html>' });
    const page = await loop.start(judged());
    expect((await loop.reaches(page, 'paused')).reason).toMatchObject({ code: 'EndpointNonsense' });
    server.answering = () => ({ status: 401, body: `unknown key ${secret}` });
    const refused = await loop.start(judged());
    expect((await loop.reaches(refused, 'paused')).reason).toMatchObject({
      code: 'EndpointRefused',
      message: expect.stringContaining('HTTP 401 unknown key [env:JUDGE_KEY]'),
      hint: expect.stringContaining('check the value of JUDGE_KEY'),
    });
    for (const run of [page, refused]) {
      await loop.tell(run, 'cancel');
      await loop.reaches(run, 'cancelled');
      expect((await scored(run)).scores).toEqual([]);
    }
  });

  it('whose answers have no score fails these samples, with the start of the answer (seed 42)', async () => {
    // The sample decides, not the number of the request: two workers may ask about one sample.
    server.answering = (request, n) => {
      const text = request.body.messages.at(-1)?.content ?? '';
      const kind = [...text].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 3;
      return kind === 0 ? says('Hm, hard to say.') : kind === 1 ? says('Score: 9') : judging(request, n);
    };
    const run = await loop.start({ ...judged(), reward: { ...(judged()['reward'] as Tree), max_failed_fraction: 1 } });
    await loop.reaches(run, 'completed');
    const { scores, reasons } = await scored(run);
    const unscored = reasons.filter((reason) => reason.includes('has no score')).length;
    const outside = reasons.filter((reason) => reason.includes('score 9 is outside of reward.endpoint.score_range'));
    expect(unscored).toBeGreaterThan(0);
    expect(outside.length).toBeGreaterThan(0);
    expect(scores).toHaveLength(16);
    expect(scores.filter((score) => score === null)).toHaveLength(unscored + outside.length);
    expect(reasons.join()).toContain('"Hm, hard to say."');
  });

  it('is left by a cancelled run (seed 42)', async () => {
    const { open, answering } = gate();
    server.answering = answering;
    const run = await loop.start(judged());
    await asked(2);
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
    await expect.poll(() => server.busy).toBe(0);
    expect(server.gone).toBeGreaterThan(0);
    open();
  });
});

it('reward workers that are killed in the middle of a call cost no score, and give none twice (seed 42)', {
  tags: ['long'],
}, async () => {
  const { open, answering } = gate();
  server.answering = answering;
  const run = await loop.start(judged({ max_concurrent: 4 }));
  await asked(4);
  for (const name of ['score-1', 'score-2']) await kill(loop.process(name));
  await expect.poll(() => server.gone).toBeGreaterThanOrEqual(4);
  open();
  await loop.reaches(run, 'completed');
  const { scores } = await scored(run);
  expect(scores).toHaveLength(16);
  expect(scores.every((score) => score === 0.25 || score === 0.75)).toBe(true);
  expect(server.most).toBeLessThanOrEqual(4);
});

it('a control process that is killed during calls lets no more through than before (seed 42)', {
  tags: ['long'],
}, async () => {
  const { open, answering } = gate();
  server.answering = answering;
  const run = await loop.start(judged({ max_concurrent: 4 }));
  await asked(4);
  await kill(loop.process('control'));
  await loop.until(run, 'a new control process', async () => loop.processIfThere('control') !== undefined);
  // The workers ask the new one for the next permits only when these answers are there.
  open();
  await loop.reaches(run, 'completed');
  expect((await scored(run)).scores).toHaveLength(16);
  expect(server.most).toBeLessThanOrEqual(4);
});

describe('a scorer of the user’s own', () => {
  const typescript = `export async function computeScore({ solutionStr }, { reward_router_address: address }) {
  const body = JSON.stringify({ messages: [{ role: 'user', content: solutionStr }] });
  try {
    const response = await fetch('http://' + address + '/v1/chat/completions', { method: 'POST', body });
    const { choices } = await response.json();
    return { score: Number(/Score: (.*)/.exec(choices[0].message.content)[1]), key: process.env.JUDGE_KEY ?? 'none' };
  } catch {
    return 0;
  }
}
`;
  const python = `import asyncio, json, urllib.request

def ask(address, text):
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(f"http://{address}/v1/chat/completions", data=body)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]

async def compute_score(data_source, solution_str, ground_truth, extra_info, reward_router_address):
    text = await asyncio.to_thread(ask, reward_router_address, solution_str)
    return float(text.split("Score: ")[1])
`;
  const file = (name: string, text: string): string => {
    const path = join(loop.inputs.folder, name);
    writeFileSync(path, text);
    return path;
  };

  it('in TypeScript asks through petrel, within the limits, longer than reward.timeout and without the key (seed 42)', async () => {
    server.answering = async (request, n) => {
      await new Promise((resolve) => setTimeout(resolve, n <= 2 ? 7_000 : 20));
      return judging(request, n);
    };
    const path = file('asks.ts', typescript);
    const run = await loop.completed(own(path, { num_workers: 4, timeout: 6 }, { max_concurrent: 2 }));
    const { scores, texts, reasons } = await scored(run);
    expect(reasons).toEqual([]);
    expect(scores).toHaveLength(16);
    expect(new Set(scores)).not.toContain(0);
    expect(
      texts.flatMap(([name, values]) => (name === 'key' ? values : [])).filter((value) => value !== 'none'),
    ).toEqual([]);
    expect(server.most).toBe(2);
    expectAskedAbout(16);
    expect(server.seen[0]).toMatchObject({ body: { model: 'tiny' }, headers: { authorization: `Bearer ${secret}` } });
  });

  it('in Python, with verl’s signature (seed 42)', { tags: ['long'] }, async () => {
    const run = await loop.completed(own(file('asks.py', python)));
    const { scores, reasons } = await scored(run);
    expect(reasons).toEqual([]);
    expect(scores.every((score) => score === 0.25 || score === 0.75)).toBe(true);
    expectAskedAbout(16);
  });

  it('cannot turn an endpoint that is down into a score (seed 42)', async () => {
    const run = await loop.create(own(file('catches.ts', typescript), {}, { max_retries: 1 }));
    await server.close();
    await loop.drive(run);
    expect((await loop.reaches(run, 'paused')).reason).toMatchObject({ code: 'EndpointDown' });
    expect((await scored(run)).scores).toEqual([]);
    await server.listen();
    await loop.resume(run);
    await loop.reaches(run, 'completed');
    expect((await scored(run)).scores).toHaveLength(16);
  });
});

it('a remote scorer gets each sample and gives named numbers (seed 42)', async () => {
  server.answering = ({ body }) => ({ body: { score: body.solution_str.length, format: 1 } });
  const run = await loop.completed({
    deterministic: 'replay',
    trainer: { total_training_steps: 1 },
    reward: {
      scorer: 'remote',
      reward_manager: { name: 'remote' },
      custom_reward_function: { path: null },
      endpoint: { url: `${server.url}/score` },
    },
  });
  expect((await scored(run)).scores).toHaveLength(16);
  expect(server.seen[0]?.body).toMatchObject({
    data_source: expect.any(String),
    solution_str: expect.any(String),
    prompt: expect.stringMatching(/\S/),
    ground_truth: expect.any(String),
  });
});

it('no key is in a record, a log or a file of the stack', async () => {
  const run = await loop.completed(judged());
  expect(server.seen.map(({ headers }) => headers.authorization)).toContain(`Bearer ${secret}`);
  server.answering = () => ({ status: 401, body: `unknown key ${secret}` });
  const refused = await loop.start(judged());
  await loop.reaches(refused, 'paused');
  await loop.said(run, /completed/);
  await loop.said(refused, /paused/);
  const files = (folder: string): string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? files(path) : entry.isFile() ? [path] : [];
    });
  const all = files(loop.home).filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined);
  expect(all.length).toBeGreaterThan(50);
  const found = all.filter((path) => readFileSync(path).includes(secret));
  expect(found).toEqual([]);
});
