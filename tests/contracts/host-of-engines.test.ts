/** A worker's host loads what an engine had in memory again, after the engine's process was killed. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Digest } from '../../core/ids.ts';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { openFolderStore } from '../../infra/store/folder.ts';
import { storeModelFolder } from '../../log/inputs/model-facts.ts';
import type { Completion, GenerationSettings } from '../../workers/engine/generation/generation.ts';
import { EngineHost } from '../../workers/engine/host/host.ts';
import type { JobContext } from '../../workers/engine/job/context.ts';
import { saveRandomModel } from '../random-model.ts';
import { childEngines } from './child-engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-host-of-engines-'));
afterAll(() => rmSync(folder, { recursive: true }));

const sizes = {
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 16,
  max_position_embeddings: 512,
};
const engine = { engine: 'child', compute: 'fp32', deterministic: true, maxTokensPerMicroBatch: 1024 } as const;
const context = {
  runId: 'run-1',
  jobId: 'job-1',
  at: { term: 1, iteration: 0 },
  store: pathToFileURL(join(folder, 'store')).href,
  progress: () => {},
  throwIfCancelled: () => {},
  say: () => {},
  count: () => {},
} as unknown as JobContext;
const settings: GenerationSettings = {
  runId: 'run-1',
  sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
  maxNewTokens: 200,
  stopTokens: new Int32Array(),
  seed: [1, 2],
};
const prompts = [Int32Array.of(2, 3), Int32Array.of(4)];

describe('the host of an engine whose process is killed', () => {
  const children: ChildProcess[] = [];
  const host = new EngineHost({
    threads: 1,
    cache: join(folder, 'cache'),
    onSaved: () => {},
    ticks: new Int32Array(new SharedArrayBuffer(4)),
    engines: [childEngines({ onStart: (child) => void children.push(child) })],
  });
  let model: Digest;
  beforeAll(async () => {
    await saveRandomModel(join(folder, 'model'), sizes, 0.1);
    const store = await openFolderStore(join(folder, 'store'));
    await store.create(keys.run('run-1'), new Uint8Array());
    model = await storeModelFolder(store, join(folder, 'model'));
  });
  afterAll(() => host.release('run-1'));

  const newest = () => {
    const child = children.at(-1);
    if (child === undefined) throw new Error('no engine was started');
    return child;
  };

  it('answers with EngineExited, and the next job has the same model and samples', async () => {
    const opened = await host.open({ model, engine }, context);
    const { profile, weightsDigest: weights } = actorOf(opened.components);
    const sample = (onTokens: () => void): Promise<Completion[]> =>
      host.sampling(
        context,
        { model, profile, weights, sampler: 'child' },
        { maxSeqs: 4, maxModelLen: 210 },
        async (generation) => {
          const begun = prompts.flatMap((prompt, draw) =>
            [0, 1].map((number) =>
              generation.sample({ prompt, draw, sample: number, turn: 0, settings }, { onTokens }),
            ),
          );
          await Promise.all(begun.map(({ ended }) => ended));
          return begun.map(({ completion }) => completion);
        },
      );
    const undisturbed = await sample(() => {});

    await expect(sample(() => newest().kill('SIGKILL'))).rejects.toMatchObject({ code: 'EngineExited' });
    expect(await sample(() => {})).toEqual(undisturbed); // from a model that only generates
    expect(children).toHaveLength(2);

    await expect(sample(() => newest().kill('SIGKILL'))).rejects.toMatchObject({ code: 'EngineExited' });
    expect(await host.open({ model, engine }, context)).toEqual(opened); // the policy is loaded again
    expect(await sample(() => {})).toEqual(undisturbed);
    expect(children).toHaveLength(3);
  });
});
