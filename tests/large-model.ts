/**
 * `npm run check:large -- [--elements 1.2e9]`: weights of more than 4 GiB. Makes a random model with that many
 * parameters in a temporary folder, loads it, hashes and publishes its weights in shards, loads them from the store
 * again, and compares digests and greedy tokens. Needs about three times the bytes of the weights on the disk, and
 * twice in memory.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { newBlockHash } from '../core/records/block-hash.ts';
import { keys } from '../core/records/keys.ts';
import type { ShardInfo } from '../core/records/schema.ts';
import type { PolicyEngine, StateSource } from '../core/ports/policy.ts';
import { streamBlob } from '../log/objects/blobs.ts';
import { openFolderStore } from '../infra/store/folder.ts';
import type { Store } from '../core/ports/store.ts';
import { readShard, weightsAlone } from '../models/checkpoint.ts';
import { machineBytes } from '../infra/machine-memory.ts';
import { engineInfo } from '../native/index.ts';
import { savePart } from '../workers/engine/state/checkpoint.ts';
import { weightsOf } from '../workers/engine/weights/published-shards.ts';
import { nativeEngines } from '../workers/engine/engines/native/index.ts';
import { MemoryPlan } from '../workers/engine/engines/memory-plan.ts';
import { rootOf } from '../workers/engine/engines/roots.ts';
import { saveRandomModel } from './random-model.ts';

const { values } = parseArgs({ options: { elements: { type: 'string', default: '1.2e9' } } });
const wanted = Number(values.elements);
const runId = 'large-20260101-000000-0001';

/** The shape of Llama 3.2 1B, with as many layers as the wanted number of parameters takes. */
const [hidden, ffn, vocab] = [2048, 8192, 128_256];
const perLayer = 3 * hidden * ffn + 2 * hidden * hidden + 2 * hidden * 512;
const sizes = {
  hidden_size: hidden,
  intermediate_size: ffn,
  num_hidden_layers: Math.max(1, Math.ceil((wanted - vocab * hidden) / perLayer)),
  num_attention_heads: 32,
  num_key_value_heads: 8,
  vocab_size: vocab,
  max_position_embeddings: 4096,
};

const started = performance.now();
const say = (text: string) =>
  console.log(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`);
const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;

const folder = mkdtempSync(join(tmpdir(), 'petrel-large-'));
try {
  process.exitCode = await check(join(folder, 'model'), await openFolderStore(join(folder, 'store')));
} finally {
  rmSync(folder, { recursive: true });
}

async function check(model: string, store: Store): Promise<number> {
  await store.create(keys.run(runId), new Uint8Array());
  await saveRandomModel(model, sizes, 0.02);
  say('the model is written');
  const first = await open(model, { type: 'folder', folder: model });
  say(`${first.elements} parameters, ${gib(first.elements * 4)} of weights, are loaded from ${model}`);
  const before = await answerOf(first);
  const shards = await savePart({ store, runId, iteration: 0 }, weightsOf(first), { weights: before.digest });
  say(`digest ${before.digest.slice(0, 12)}, tokens ${before.tokens.join(' ')}; published in ${shards.length} shards`);
  await first.close();

  const second = await open(model, published(store, shards));
  const after = await answerOf(second);
  say(`digest ${after.digest.slice(0, 12)}, tokens ${after.tokens.join(' ')} from the shards`);
  await second.close();
  const same = before.digest === after.digest && before.tokens.join() === after.tokens.join();
  console.log(`${same ? 'equal' : 'NOT EQUAL'}; memory at most ${gib(process.resourceUsage().maxRSS * 1024)}`);
  return same ? 0 : 1;
}

const engines = nativeEngines(new MemoryPlan(machineBytes()));
const options = { deterministic: false, threads: 2, trainable: false } as const;

async function open(model: string, source: StateSource): Promise<PolicyEngine> {
  const compute = engineInfo().bf16 ? 'bf16' : 'fp32';
  const engine = await engines.open({ folder: model, head: 'tokens' }, { ...options, compute });
  await engine.load(source);
  return engine;
}

function published(store: Store, shards: readonly ShardInfo[]): StateSource {
  return {
    type: 'pieces',
    steps: 0,
    read: async (sinkOf) => {
      for (const shard of shards) await readShard(shard, weightsAlone, streamBlob(store, runId, shard.blob), sinkOf);
    },
  };
}

/** Digest of the weights, and eight greedy tokens. */
async function answerOf(engine: PolicyEngine): Promise<{ readonly digest: string; readonly tokens: number[] }> {
  const digest = await rootOf(engine, 'weights', newBlockHash);
  const sampler = await engines.samplerOf?.(engine);
  if (sampler === undefined) throw new Error('the native engine samples in place');
  await sampler.makeRoom({ maxSeqs: 1, maxModelLen: 32 });
  const request = {
    prompt: Int32Array.of(11, 22, 33),
    samples: [{ key: 1, random: { seed: [0, 0], draw: 0, sample: 0, turn: 0 } }],
    sampling: { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: 8,
    stopTokens: new Int32Array(),
  } as const;
  const tokens: number[] = [];
  for await (const made of sampler.generate([request])) tokens.push(...made.tokens);
  await sampler.close();
  return { digest, tokens };
}
