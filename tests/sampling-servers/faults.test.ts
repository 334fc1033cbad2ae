/** What a sampler over HTTP says when its server is not what it should be, or stops being it. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { GenerateRequest, OwningSampler } from '../../core/ports/sampler.ts';
import type { SamplingServer } from '../../core/sampling-server.ts';
import { httpSamplers } from '../../workers/engine/engines/http/index.ts';
import { drain } from '../contracts/engine.ts';
import { tinySizes } from '../loop-inputs.ts';
import { saveRandomModel } from '../random-model.ts';
import { SamplingServerUnderTest } from '../sampling-server.ts';
import type { ServerFaults, ServerShape } from '../sampling-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-server-faults-'));
const model = join(folder, 'model');
const other = join(folder, 'other');
const weights = join(folder, 'weights');
const open: (SamplingServerUnderTest | OwningSampler)[] = [];

beforeAll(async () => {
  await saveRandomModel(model, tinySizes, 0.3);
  await saveRandomModel(other, { ...tinySizes, vocab_size: 26 }, 0.3);
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  tick = () => {};
});
afterAll(() => rmSync(folder, { recursive: true }));

async function serve(shape: Partial<ServerShape> = {}, of = model): Promise<SamplingServerUnderTest> {
  const server = await SamplingServerUnderTest.start(of, { api: 'vllm', ...shape });
  open.push(server);
  return server;
}

/** Called by samplers that wait. */
let tick = () => {};

async function samplerOf(server: SamplingServerUnderTest, more: Partial<SamplingServer> = {}, env = {}) {
  const options = { compute: 'fp32', deterministic: false, threads: 1 } as const;
  const named = server.named(weights, more);
  const sampler = await httpSamplers(() => tick(), env).sampler({ folder: model, head: 'tokens' }, options, named);
  open.push(sampler);
  return sampler;
}

/** It has the weights of a folder, and room for two samples at a time. */
async function readySampler(server: SamplingServerUnderTest, more: Partial<SamplingServer> = {}) {
  const sampler = await samplerOf(server, more);
  await sampler.use({ type: 'folder', folder: model }, { format: 'F32', hash: 'blake3' });
  await sampler.makeRoom({ maxSeqs: 2, maxModelLen: 24 });
  return sampler;
}

const request = (keys: readonly number[], maxNewTokens = 6): GenerateRequest => ({
  prompt: Int32Array.of(3, 9, 4),
  samples: keys.map((key) => ({ key, random: { seed: [5, 6], draw: 1, sample: key, turn: 0 } })),
  sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
  maxNewTokens,
  stopTokens: new Int32Array(),
});

describe.each(['vllm', 'sglang'] as const)('a server like %s that cannot sample for a run', (api) => {
  it('without calls for new weights is refused when it is opened', async () => {
    const server = await serve({ api });
    server.faults.noUpdates = true;
    await expect(samplerOf(server)).rejects.toMatchObject({
      code: 'WrongServer',
      message: expect.stringContaining('cannot take new weights'),
      hint: expect.stringMatching(/VLLM_SERVER_DEV_MODE=1 vllm serve|newer SGLang/),
    });
  });

  it.each(['larger', 'smaller'] as const)('with a %s vocabulary is refused when it is opened', async (vocabulary) => {
    const server = await serve({ api });
    server.faults.vocabulary = vocabulary;
    await expect(samplerOf(server)).rejects.toMatchObject({
      code: 'WrongServer',
      message: expect.stringMatching(/another vocabulary: it (knows token 18|refuses token 17)/),
      hint: expect.stringContaining('model.path'),
    });
  });

  it('without log-probs is refused when it is opened', async () => {
    const server = await serve({ api });
    server.faults.logProbs = 'none';
    await expect(samplerOf(server)).rejects.toMatchObject({
      code: 'ServerNonsense',
      message: expect.stringContaining('without token ids and log-probs'),
    });
  });

  it('with too short a context says how to start it, and the next job asks it again', async () => {
    const sampler = await readySampler(await serve({ api }));
    await expect(sampler.makeRoom({ maxSeqs: 2, maxModelLen: 116 })).rejects.toMatchObject({
      code: 'WrongServer',
      message: expect.stringContaining('takes 64 tokens of a prompt and its response; the run needs 116'),
      hint: expect.stringMatching(/--(max-model-len|context-length) 116/),
    });
    await sampler.exited;
  });

  it('that answers and keeps its weights is noticed at the first ones, and nothing is said to be loaded', async () => {
    const server = await serve({ api });
    server.faults.ignoresWeights = true;
    await expect(readySampler(server)).rejects.toMatchObject({
      code: 'WrongServer',
      message: expect.stringContaining('did not take new weights: with zeros, each of 18 tokens'),
    });
    expect(server.loaded).toHaveLength(1);
    expect(server.label).toContain('petrel-loading');
  });

  it('that keeps its weights later is noticed at the next ones', async () => {
    const server = await serve({ api });
    const sampler = await readySampler(server);
    server.faults.ignoresWeights = true;
    const changed = join(folder, `changed-${api}`);
    await saveRandomModel(changed, tinySizes, 0.2);
    await expect(
      sampler.use({ type: 'folder', folder: changed }, { format: 'F32', hash: 'blake3' }),
    ).rejects.toMatchObject({ code: 'WrongServer', message: expect.stringContaining('did not take new weights') });
  });

  it('that a worker left in the middle of a load is woken, and proves again that it loads', async () => {
    const server = await serve({ api });
    const before = await readySampler(server);
    await before.close();
    await server.pause();
    server.label = 'petrel-loading-of-a-worker-that-died';
    const loads = server.loaded.length;
    expect((await drain((await readySampler(server)).generate([request([1])]))).get(1)?.tokens).toHaveLength(6);
    expect(server.loaded).toHaveLength(loads + 3);
  });

  it('that fails to load says why, and can be asked again', async () => {
    const server = await serve({ api });
    server.faults.loadFails = 'no such folder on this machine';
    await expect(readySampler(server)).rejects.toMatchObject({
      code: 'WrongServer',
      where: 'rollout.weights_dir',
      message: expect.stringContaining('no such folder on this machine'),
    });
    delete server.faults.loadFails;
    await readySampler(server);
  });

  it('that serves other weights than the model’s is refused', async () => {
    const server = await serve({ api }, join(folder, 'model'));
    const sampler = await samplerOf(server);
    const changed = join(folder, `another-${api}`);
    await saveRandomModel(changed, tinySizes, 0.9);
    await expect(
      sampler.use({ type: 'folder', folder: changed }, { format: 'F32', hash: 'blake3' }),
    ).rejects.toMatchObject({ code: 'WrongServer', message: expect.stringContaining('serves another model') });
  });

  it.each([
    ['cuts a stream', { cut: 1 }, 'ServerFailed', 'a stream broke off'],
    ['fails a sample', { failing: 1 }, 'ServerFailed', 'CUDA error'],
    ['gives a token of another model', { strangeTokens: true }, 'ServerNonsense', 'the token 21'],
    ['ends a sample early', { endsEarly: true }, 'ServerNonsense', 'a sample of 1 tokens where 6 were asked for'],
    ['gives no number', { logProbs: 'null' }, /Server(Failed|Nonsense)/, /is no number|without token ids/],
  ] as const)('%s: its job is rejected, and other jobs go on with the same weights', async (_, faults, code, text) => {
    const server = await serve({ api });
    const sampler = await readySampler(server);
    Object.assign(server.faults, faults satisfies ServerFaults);
    await expect(drain(sampler.generate([request([1])]))).rejects.toMatchObject({
      code: typeof code === 'string' ? code : expect.stringMatching(code),
      message: typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text),
    });
    for (const fault of Object.keys(faults)) delete server.faults[fault as keyof ServerFaults];
    const exited = sampler.exited.then(() => 'exited');
    expect((await drain(sampler.generate([request([1])]))).get(1)?.tokens).toHaveLength(6);
    expect(await Promise.race([exited, Promise.resolve('open')])).toBe('open');
  });

  it('fails one sample of two jobs: only that one’s job is rejected', async () => {
    const server = await serve({ api });
    const sampler = await readySampler(server);
    server.faults.failing = 1;
    const jobs = await Promise.allSettled([1, 2].map((key) => drain(sampler.generate([request([key])]))));
    expect(jobs.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('that falls silent is given up after the time limit', async () => {
    const server = await serve({ api });
    const sampler = await readySampler(server, { timeoutMs: 3_000 });
    server.faults.silent = true;
    await expect(drain(sampler.generate([request([1])]))).rejects.toMatchObject({
      kind: 'retryable',
      code: 'EngineExited',
      message: expect.stringContaining('silent for 3 s'),
    });
    await sampler.exited;
  });

  it('that is silent for a while gives ticks to whoever waits for it', async () => {
    const server = await serve({ api });
    // It goes on when a tick has come.
    const hold = () => {
      server.faults.held = new Promise((resolve) => (tick = resolve));
    };
    hold();
    const sampler = await samplerOf(server);
    hold();
    await sampler.use({ type: 'folder', folder: model }, { format: 'F32', hash: 'blake3' });
    await sampler.makeRoom({ maxSeqs: 2, maxModelLen: 24 });
    hold();
    expect((await drain(sampler.generate([request([1])]))).get(1)?.tokens).toHaveLength(6);
  });

  it('whose turn another worker has gives ticks to whoever waits for it', async () => {
    const server = await serve({ api });
    const weightsFolder = mkdtempSync(join(folder, 'turn-'));
    await samplerOf(server, { weightsFolder });
    const [own = ''] = readdirSync(weightsFolder);
    const lock = join(weightsFolder, own, 'lock');
    writeFileSync(lock, String(process.pid));
    tick = () => rmSync(lock, { force: true });
    await samplerOf(server, { weightsFolder });
  });

  it('that is gone is a reason to wait for it, and back again it gets the weights again', async () => {
    const server = await serve({ api });
    const sampler = await readySampler(server);
    await server.close();
    await expect(drain(sampler.generate([request([1])]))).rejects.toMatchObject({ code: 'EngineExited' });
    await expect(samplerOf(server)).rejects.toMatchObject({
      kind: 'unfit',
      code: 'ServerDown',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    await server.listen();
    expect((await drain((await readySampler(server)).generate([request([1])]))).get(1)?.tokens).toHaveLength(6);
    expect(server.label).toMatch(/^petrel-f32-/);
  });

  it('that somebody else gives other weights in the middle of a load is shared, and not the wrong one', async () => {
    const server = await serve({ api });
    const sampler = await samplerOf(server);
    Object.assign(server.faults, { relabelled: 'theirs', ignoresWeights: true });
    await expect(
      sampler.use({ type: 'folder', folder: model }, { format: 'F32', hash: 'blake3' }),
    ).rejects.toMatchObject({ code: 'ServerShared', message: expect.stringContaining('given other weights') });
  });

  it('keeps nothing on the disk that petrel has written when nobody samples any more', async () => {
    const weightsFolder = mkdtempSync(join(folder, 'kept-'));
    const server = await serve({ api });
    const samplers = [await readySampler(server, { weightsFolder }), await readySampler(server, { weightsFolder })];
    const [own = ''] = readdirSync(weightsFolder);
    expect(readdirSync(join(weightsFolder, own)).map((name) => name.replace(/-.*/, ''))).toEqual(['petrel', 'zeros']);
    writeFileSync(join(weightsFolder, own, 'of-somebody'), '');
    for (const sampler of samplers) await sampler.close();
    expect(readdirSync(join(weightsFolder, own))).toEqual(['of-somebody']);
  });

  it('is given weights that another worker has written, and can give them to others', async () => {
    const weightsFolder = mkdtempSync(join(folder, 'same-'));
    const server = await serve({ api });
    const samplers = [await readySampler(server, { weightsFolder }), await readySampler(server, { weightsFolder })];
    const read = samplers.map(async (sampler) => {
      const bytes = Buffer.alloc(64);
      await sampler.readPublished?.('F32', 0, bytes);
      return bytes;
    });
    const [one, two] = await Promise.all(read);
    expect(one?.some((byte) => byte !== 0)).toBe(true);
    expect(two).toEqual(one);
  });

  it('that somebody else gives other weights is noticed by the samples', async () => {
    const server = await serve({ api });
    const sampler = await readySampler(server);
    server.label = 'theirs';
    await expect(drain(sampler.generate([request([1])]))).rejects.toMatchObject({
      code: 'ServerShared',
      message: expect.stringContaining('weights theirs in place of petrel-f32-'),
    });
    await sampler.exited;
  });

  it('is given the same weights once, whoever of the run’s workers asks', async () => {
    const server = await serve({ api });
    const [one, two] = [await readySampler(server), await samplerOf(server)];
    const loads = server.loaded.length;
    const running = drain(one.generate([request([1, 2, 3])]));
    await two.use({ type: 'folder', folder: model }, { format: 'F32', hash: 'blake3' });
    expect((await running).size).toBe(3);
    expect(server.loaded).toHaveLength(loads);
    // One folder of zeros, and one of the weights.
    const [own] = readdirSync(weights).filter((name) => server.loaded.at(-1)?.includes(name));
    expect(readdirSync(join(weights, own ?? '')).filter((name) => name.startsWith('petrel-'))).toHaveLength(1);
  });
});

it('is asked with the key of the variable, and its answers never show it', async () => {
  const key = 'a-key-of-thirty-characters-1234';
  const server = await serve({ api: 'sglang', key });
  const apiKey = 'env:SERVER_KEY';
  await expect(samplerOf(server)).rejects.toMatchObject({
    code: 'ServerRefused',
    where: 'rollout.api_key',
    hint: expect.stringContaining('rollout.api_key=env:NAME'),
  });
  await expect(samplerOf(server, { apiKey })).rejects.toMatchObject({ code: 'MissingSecret' });
  await expect(samplerOf(server, { apiKey }, { SERVER_KEY: 'wrong-key' })).rejects.toMatchObject({
    hint: expect.stringContaining('SERVER_KEY'),
  });
  expect((await samplerOf(server, { apiKey }, { SERVER_KEY: key })).sampledBy).toContain('sglang 0.5.23');
});

it.each([
  ['vllm', 'sglang'],
  ['sglang', 'vllm'],
] as const)('a server like %s that is taken for one of %s is named', async (api, taken) => {
  const server = await serve({ api });
  await expect(samplerOf(server, { api: taken })).rejects.toMatchObject({
    code: 'WrongServer',
    hint: expect.stringContaining(`rollout.name=${api}`),
  });
});
