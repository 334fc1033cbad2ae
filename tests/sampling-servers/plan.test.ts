/** What `petrel plan` finds of a server at `rollout.url`: it asks the server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { packageRoot } from '../../infra/home.ts';
import type { PlanCheck } from '../../api/checks/checks.ts';
import { cliHome, type CliHome } from '../cli.ts';
import { tinySizes } from '../loop-inputs.ts';
import { saveRandomModel } from '../random-model.ts';
import { SamplingServerUnderTest } from '../sampling-server.ts';
import type { ServerShape } from '../sampling-server.ts';

const base = join(packageRoot(), 'examples/01-arithmetic-grpo/base');
let cli: CliHome;
let server: SamplingServerUnderTest | undefined;

beforeEach(() => {
  cli = cliHome();
  writeFileSync(
    join(cli.home, 'run.yaml'),
    `model: {path: ${base}}\ndata: {train_files: rows.jsonl, train_batch_size: 2, max_prompt_length: 16, max_response_length: 16}\nactor: {ppo_mini_batch_size: 2}\nrollout: {n: 4, name: vllm}\nreward: {scorer: last_integer}\n`,
  );
  const row = { data_source: 'sums', prompt: '1+2=', reward_model: { style: 'rule', ground_truth: '3' } };
  writeFileSync(join(cli.home, 'rows.jsonl'), `${JSON.stringify(row)}\n`.repeat(4));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  cli.remove();
});

async function serve(shape: Partial<ServerShape> = {}, model = base): Promise<SamplingServerUnderTest> {
  server = await SamplingServerUnderTest.start(model, { api: 'vllm', ...shape });
  return server;
}

async function plan(...words: string[]) {
  const { code, json } = await cli.petrel('plan', join(cli.home, 'run.yaml'), ...words, '--json');
  const { checks } = json<{ checks: PlanCheck[] }>();
  return {
    code,
    server: checks.find(({ name }) => name === 'server'),
  };
}

it('says what serves, and changes nothing of it', async () => {
  const served = await serve();
  const found = await plan(`rollout.url=${served.url}`);
  expect(found.server).toMatchObject({
    status: 'ok',
    detail: expect.stringContaining('vllm 0.32.0+test, serves'),
  });
  expect([served.label, served.loaded]).toEqual(['default', []]);
});

it('asks later where a worker gives it weights just now, and does not wake it', async () => {
  const served = await serve();
  served.label = 'petrel-loading-of-a-worker';
  await served.pause();
  expect((await plan(`rollout.url=${served.url}`)).server).toMatchObject({
    status: 'later',
    detail: expect.stringContaining('gets weights just now'),
  });
  expect(served.seen).not.toContain('/resume');
});

it.each([
  ['rollout.temperature=0.7', { raw: true }, /rollout\.temperature=0\.7/, '--logprobs-mode processed_logprobs'],
  ['rollout.top_k=5', {}, /rollout\.top_k/, 'rollout.top_k=-1'],
  ['rollout.repetition_penalty=1.2', {}, /repetition_penalty=1\.2/, 'rollout.repetition_penalty=1'],
  ['data.max_response_length=100', {}, /takes 64 tokens .* the run needs 116/, 'data.max_response_length'],
] as const)('refuses %s on a server that cannot do it', async (word, shape, message, hint) => {
  const served = await serve(shape);
  const { code, server: found } = await plan(`rollout.url=${served.url}`, word);
  expect(code).not.toBe(0);
  expect(found).toMatchObject({
    status: 'failed',
    code: 'WrongServer',
    detail: expect.stringMatching(message),
    hint: expect.stringContaining(hint),
  });
});

it('refuses a server with another model', async () => {
  const other = join(cli.home, 'other');
  await saveRandomModel(other, tinySizes, 0.3);
  const served = await serve({}, other);
  expect((await plan(`rollout.url=${served.url}`)).server).toMatchObject({
    code: 'WrongServer',
    detail: expect.stringMatching(/serves another model: hidden_size is 32/),
  });
});

it('names an address where nothing answers, and one that is another kind of server', async () => {
  expect((await plan('rollout.url=http://127.0.0.1:9')).server).toMatchObject({
    status: 'failed',
    code: 'ServerDown',
    detail: expect.stringContaining('ECONNREFUSED'),
    hint: expect.stringContaining('curl -sS http://127.0.0.1:9/v1/models'),
  });
  const served = await serve({ api: 'sglang' });
  expect((await plan(`rollout.url=${served.url}`)).server).toMatchObject({
    code: 'WrongServer',
    hint: expect.stringContaining('rollout.name=sglang'),
  });
});

it('asks later where the key is not set here', async () => {
  const served = await serve({ key: 'secret-of-the-server' });
  expect((await plan(`rollout.url=${served.url}`, 'rollout.api_key=env:NO_SUCH_KEY')).server).toMatchObject({
    status: 'later',
    detail: expect.stringContaining('NO_SUCH_KEY is not set here'),
  });
  expect((await plan(`rollout.url=${served.url}`)).server).toMatchObject({
    code: 'ServerRefused',
    where: 'rollout.api_key',
  });
});
