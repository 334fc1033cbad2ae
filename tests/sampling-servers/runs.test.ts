/** Whole runs whose responses a server at `rollout.url` samples: tests/sampling-server.ts. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { readRecord } from '../../log/objects/records.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';
import { SamplingServerUnderTest } from '../sampling-server.ts';

const loop = new InProcessLoop(sevens);
let server: SamplingServerUnderTest | undefined;
beforeAll(() => loop.up());
afterEach(() => server?.close());
afterAll(() => loop.remove());

async function serve(api: 'vllm' | 'sglang'): Promise<SamplingServerUnderTest> {
  server = await SamplingServerUnderTest.start(loop.modelFolder, { api });
  return server;
}

const recipe = ({ shape, url }: SamplingServerUnderTest, steps: number) => ({
  deterministic: false,
  trainer: { total_training_steps: steps },
  rollout: { name: shape.api, url, weights_dir: join(loop.folder, 'weights') },
});

/** Mean score of each iteration. */
const scores = ({ iterations }: RunInProcess): number[] =>
  iterations.map(({ batch }) => Number(batch.metrics['critic/score/mean']));

describe.each(['vllm', 'sglang'] as const)('a run on a server like %s', (api) => {
  it('learns: the server has the new weights of each iteration', async () => {
    const served = await serve(api);
    const run = await loop.completed(recipe(served, 16));
    const states = run.iterations.map(({ update }) => actorOf(update.components).stateDigest);
    expect(new Set(states).size).toBe(states.length);
    // Zeros and a mirrored model first, then the weights of each iteration.
    expect(served.loaded.length).toBe(2 + states.length);
    const [first = 0] = scores(run);
    expect(scores(run).at(-1)).toBeGreaterThan(first + 0.2);
  });

  it('goes on when a stream is cut, a sample fails and the server is started again', async () => {
    const served = await serve(api);
    served.faults.cut = 1;
    const run = await loop.completed(recipe(served, 6), {
      committed: async (position) => {
        if (position === 1) served.faults.failing = 1;
        if (position !== 2) return;
        await served.close();
        await served.listen();
      },
    });
    expect([served.faults.cut, served.faults.failing]).toEqual([0, 0]);
    expect(run.iterations).toHaveLength(6);
  });
});

it('records which server has sampled', async () => {
  const served = await serve('vllm');
  const { log } = await loop.completed(recipe(served, 2));
  const by: unknown[] = [];
  for (const key of await log.store.list(keys.results(log.runId))) {
    const { stage, output } = (await readRecord(log.store, key, resultRecord))?.record ?? {};
    if (stage === 'rollout') by.push(output?.['sampledBy']);
  }
  expect(by.length).toBeGreaterThan(0);
  expect(new Set(by)).toEqual(new Set([`vllm 0.32.0+test, model ${loop.modelFolder}`]));
});
