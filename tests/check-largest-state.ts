/**
 * `npm run check:state -- [--elements 7.6e9]`: a state in another process's memory, all zeros, goes through everything
 * that petrel does with states: a checkpoint is saved, verified, loaded and exported, the weights are published and
 * read. Fails when this process has more than 1 GiB at any time. Needs five bytes on the disk for each element.
 */
import { deepStrictEqual, ok } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exportPolicy } from '../api/checkpoints/export.ts';
import { verifyCheckpoints } from '../api/checkpoints/verify.ts';
import type { PolicyEngine } from '../core/ports/policy.ts';
import { checkpointManifest } from '../core/records/schema.ts';
import { publishedBytes } from '../core/records/publications.ts';
import { openFolderStore } from '../infra/store/folder.ts';
import { needRecord } from '../log/objects/records.ts';
import { openSafetensors } from '../models/safetensors.ts';
import { checkpointSource } from '../workers/engine/state/checkpoint.ts';
import { CheckpointWriter } from '../workers/engine/state/checkpoint-writer.ts';
import { roundedSource, savePublished } from '../workers/engine/weights/published-shards.ts';
import { EmptyEngine } from './empty-engine.ts';
import { buildRun } from './run-builder.ts';

const { values } = parseArgs({ options: { elements: { type: 'string', default: '7.6e9' } } });
const most = 2 ** 30;

const started = performance.now();
const peak = () => process.resourceUsage().maxRSS * 1024;
const say = (text: string) => {
  const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(6);
  console.log(`${seconds} s  ${text}; peak ${(peak() / 2 ** 20).toFixed(0)} MiB`);
};

const folder = mkdtempSync(join(tmpdir(), 'petrel-largest-'));
try {
  await check(join(folder, 'store'), new EmptyEngine(Number(values.elements)));
} finally {
  rmSync(folder, { recursive: true });
}

async function check(url: string, engine: EmptyEngine): Promise<void> {
  const store = await openFolderStore(url);
  const digests = await engine.digests();
  const { runId, log } = await buildRun(store, {
    done: 1,
    lastState: { stateDigest: digests.stateDigest, weightsDigest: digests.weightsDigest },
  });
  say(`a state of ${engine.elements} elements is to be saved`);
  const writer = new CheckpointWriter();
  const place = { store: url, runId, term: 1, iteration: 1 };
  const state = { engines: { actor: policyOf(engine) }, blockHash: 'blake3' } as const;
  const { written } = await writer.write(place, state, digests);
  const { saved } = await written;
  writer.release();
  await engine.close();
  say('its checkpoint is saved');

  const verdicts = await verifyCheckpoints(log, 1, () => {});
  deepStrictEqual(
    verdicts.map(({ ok, bytes, problem }) => ({ ok, bytes, problem })),
    [{ ok: true, bytes: 12 * engine.elements, problem: undefined }],
  );
  say('it is verified');

  const { record } = await needRecord(store, saved.manifest ?? '', checkpointManifest);
  const loading = checkpointSource(store, runId, record, engine, () => {});
  if (loading.type !== 'pieces') throw new Error('a checkpoint consists of pieces');
  let loaded = 0;
  await loading.read(() => (bytes) => void (loaded += bytes.length));
  deepStrictEqual(loaded, 12 * engine.elements);
  say('it is loaded');

  const publication = { format: 'BF16', digest: '0'.repeat(64) } as const;
  const manifest = await savePublished({ store, runId, iteration: 1 }, policyOf(engine), publication);
  say(`its weights are published in ${manifest.shards.length} shards`);
  const source = roundedSource(engine.parameters, { store, runId, manifest }, () => {});
  if (source.type !== 'published') throw new Error('a publication is published weights');
  let read = 0;
  await source.read(() => (bytes) => void (read += bytes.length));
  deepStrictEqual(read, publishedBytes(engine.parameters, 'BF16'));
  say('they are read');

  const out = join(folder, 'model');
  await exportPolicy(log, { folder: out, iteration: 1 }, { home: join(folder, 'home') });
  const model = await openSafetensors(out);
  const exported = [...model.tensors.values()].reduce((sum, { begin, end }) => sum + end - begin, 0);
  await model.close();
  deepStrictEqual(exported, 2 * engine.elements);
  say('the model is exported');
  ok(peak() <= most, `this process had ${peak()} bytes`);
}

/** No more of it is asked for here. */
function policyOf(engine: EmptyEngine): PolicyEngine {
  return engine as Partial<PolicyEngine> as PolicyEngine;
}
