/** Runs on a real stack whose responses a server at `rollout.url` samples: two workers ask it, beside a trainer. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import { SamplingServerUnderTest } from '../sampling-server.ts';

const secret = 'sk-test-9876543210-never-to-be-stored';
process.env['SAMPLER_KEY'] = secret;

const loop = new LoopUnderTest();
let server: SamplingServerUnderTest | undefined;
beforeAll(() =>
  loop.up([
    { name: 'train', count: 1, roles: ['trainer', 'reward'], threads: 1 },
    { name: 'sample', count: 2, roles: ['rollout'], threads: 1 },
  ]),
);
afterEach(() => server?.close());
afterAll(() => loop.remove());

async function serve(api: 'vllm' | 'sglang'): Promise<SamplingServerUnderTest> {
  server = await SamplingServerUnderTest.start(loop.inputs.model, { api, key: secret });
  return server;
}

/** The stack goes on: what it removes meanwhile is left out. */
function filesUnder(folder: string): string[] {
  const entries = unlessGone(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesUnder(path);
    return entry.isFile() ? [path] : [];
  });
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const recipe = ({ shape, url }: SamplingServerUnderTest, iterations: number): Tree => ({
  deterministic: 'replay',
  rollout: { name: shape.api, url, api_key: 'env:SAMPLER_KEY', max_num_seqs: 4 },
  trainer: { total_training_steps: iterations },
});

it('trains with a server that wants a key, which no record and no file holds', async () => {
  const run = await loop.completed(recipe(await serve('vllm'), 3));
  expect((await loop.iterations(run)).length).toBeGreaterThan(1);
  // Zeros, a mirrored model, and each iteration's weights once, although two workers ask.
  expect(server?.loaded).toHaveLength(2 + (await loop.iterations(run)).length);
  // The run has ended: nothing is kept for its server.
  await expect.poll(() => readdirSync(join(loop.home, 'sampling-servers'))).toEqual([]);
  for (const path of filesUnder(loop.home))
    expect(unlessGone(() => readFileSync(path))?.includes(secret), path).not.toBe(true);
});

it('waits for a server that is gone, says so, and goes on when it is back', async () => {
  const served = await serve('sglang');
  const run = await loop.create(recipe(served, 3));
  await served.close();
  await loop.drive(run);
  const lacking = async () => (await listWorkers(loop.nc)).flatMap(({ lacks = [] }) => lacks);
  await expect.poll(lacking).toContainEqual(
    expect.objectContaining({
      what: expect.stringContaining('the server http://127.0.0.1'),
      error: expect.objectContaining({ code: 'ServerDown' }),
    }),
  );
  expect(await run.log.status.newest()).toMatchObject({ state: 'running' });
  await served.listen();
  await loop.reaches(run, 'completed');
});

it('is resumed only with a server that suits it', async () => {
  const served = await serve('vllm');
  const run = await loop.completed(recipe(served, 1));
  const petrel = (...words: string[]) => runWords(loop.home, ['resume', run.runId, ...words]);
  const more = 'trainer.total_training_steps=2';
  served.faults.noUpdates = true;
  await expect(petrel(more)).rejects.toMatchObject({ code: 'WrongServer' });
  await expect(petrel(more, 'rollout.url=http://127.0.0.1:9')).rejects.toMatchObject({ code: 'ServerDown' });
  served.faults.noUpdates = false;
  await petrel(more, '--wait');
  expect(await loop.iterations(run)).toHaveLength(2);
});

it('pauses for a server that keeps its weights, and goes on when it takes them', async () => {
  const served = await serve('vllm');
  served.faults.ignoresWeights = true;
  const run = await loop.start(recipe(served, 2));
  const { reason } = await loop.reaches(run, 'paused');
  expect(reason).toMatchObject({
    code: 'WrongServer',
    message: expect.stringContaining('did not take new weights'),
  });
  served.faults.ignoresWeights = false;
  await loop.resume(run);
  await loop.reaches(run, 'completed');
});
