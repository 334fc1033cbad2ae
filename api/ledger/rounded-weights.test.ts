/**
 * A run whose policy is published in bf16, as built runs are not: the verifier accepts it, and tells what was forged.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { actorOf } from '../../core/records/components.ts';
import type { TermRecord, WeightsManifest } from '../../core/records/schema.ts';
import { putBlob } from '../../log/objects/blobs.ts';
import { blockHasher } from '../../log/objects/block-hasher.ts';
import { TreeDigest } from '../../log/objects/digest.ts';
import { openStore } from '../../infra/store/open.ts';
import { encodeSafetensors, roundToBf16 } from '../../models/safetensors.ts';
import { builtState, buildRun } from '../../tests/run-builder.ts';
import { stateDigests } from '../../tests/state-digests.ts';
import { Forger } from './forge.test-support.ts';
import { verifyLedger } from './verify.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-rounded-'));
let runId = '';
let store: Store;
let forger: Forger;
/** Digests of the publications after iterations 1 to 4. */
let digests: string[] = [];

beforeEach(async () => {
  store = await openStore(join(folder, 'store'));
  ({ runId } = await buildRun(store, { done: 4, checkpoints: [4], evaluations: [4] }));
  forger = new Forger(store, runId);
  digests = await Promise.all([1, 2, 3, 4].map(digestAt));
  await forger.change<TermRecord>(forger.key.term(1), ({ components }) =>
    Object.assign(actorOf(components).profile, { compute: 'bf16' }),
  );
  await forger.chain(1);
  for (const k of [1, 2, 3, 4]) await name(k, { BF16: digests[k - 1] ?? '' });
  for (const k of [3, 4]) await publish(k);
});
afterEach(() => rmSync(folder, { recursive: true }));

const name = (k: number, publications: Readonly<Record<string, string>>) =>
  forger.update(k, ({ components }) => Object.assign(actorOf(components), { publications }));

/** The first eight values are a matrix, in bf16. */
function tensorsAt(k: number): { readonly matrix: Uint16Array; readonly norm: Float32Array } {
  const { weights } = builtState(k);
  const matrix = new Uint16Array(8);
  roundToBf16(weights.subarray(0, 8), matrix);
  return { matrix, norm: weights.slice(8) };
}

async function digestAt(k: number): Promise<string> {
  const { matrix, norm } = tensorsAt(k);
  const tree = new TreeDigest(matrix.byteLength + norm.byteLength, await blockHasher('blake3'));
  tree.add(new Uint8Array(matrix.buffer));
  tree.add(norm);
  return tree.root();
}

async function publish(k: number, named = digests[k - 1] ?? '', values = tensorsAt(k)): Promise<void> {
  const bytes = encodeSafetensors(
    {
      matrix: { dtype: 'BF16', data: values.matrix, shape: [4, 2] },
      norm: { dtype: 'F32', data: values.norm, shape: [2] },
    },
    { weights: named },
  );
  const tensors = [
    { name: 'matrix', start: 0, end: 8 },
    { name: 'norm', start: 8, end: 10 },
  ];
  await forger.write(forger.key.weights(named), {
    format: 2,
    component: 'actor',
    weightsDigest: named,
    blockHash: 'blake3',
    dtypes: { matrix: 'BF16', norm: 'F32' },
    shards: [{ blob: await putBlob(store, runId, bytes), bytes: bytes.byteLength, tensors }],
  });
}

const verified = (deep = true) => verifyLedger(store, runId, { deep });
const faults = async (deep = true) => (await verified(deep)).faults;
const toTell = (key: unknown, expected: RegExp) =>
  expect.objectContaining({ key, expected: expect.stringMatching(expected) });

it('is accepted, with publications of a checkpoint and of no checkpoint', async () => {
  const { faults: found, unnamed } = await verified();
  expect(found).toEqual([]);
  expect(unnamed).toBe(0);
  expect(await faults(false)).toEqual([]);
});

it('names a publication that its weights do not give', async () => {
  const other = digests[0] ?? '';
  await name(4, { BF16: other });
  await publish(1);
  expect(await faults()).toEqual([
    toTell(
      forger.key.checkpoint(4, stateDigests(builtState(4)).stateDigest),
      /its weights as they are published in BF16/,
    ),
  ]);
});

it('has shards with other values', async () => {
  await publish(3, digests[2], tensorsAt(2));
  expect(await faults(false)).toEqual([]);
  expect(await faults()).toEqual([toTell(forger.key.weights(digests[2] ?? ''), /digest of its shards/)]);
});

it('has a manifest that claims other types, or leaves out a tensor', async () => {
  const key = forger.key.weights(digests[3] ?? '');
  const whole = await forger.read<WeightsManifest>(key);
  await forger.write(key, { ...whole, dtypes: { matrix: 'BF16', norm: 'BF16' } });
  expect(await faults(false)).toContainEqual(toTell(expect.anything(), /2 values of norm in BF16/));
  const shards = whole.shards.map((shard) => ({ ...shard, tensors: shard.tensors.slice(1) }));
  await forger.write(key, { ...whole, shards });
  expect(await faults(false)).toContainEqual(toTell(key, /a tensor from element 0 on/));
  expect(await faults(false)).toContainEqual(toTell(key, /names of its tensors/));
});

it('names a format that nobody can load', async () => {
  await name(2, { FP8: digests[1] ?? '' });
  expect(await faults(false)).toEqual([
    toTell(forger.key.update(2), /a publication of actor that samplers in bf16 can load/),
  ]);
});

it('names one in bf16 although it computes in fp32', async () => {
  await forger.change<TermRecord>(forger.key.term(1), ({ components }) =>
    Object.assign(actorOf(components).profile, { compute: 'fp32' }),
  );
  await forger.chain(1);
  const found = await faults(false);
  expect(found).toHaveLength(4);
  expect(found[0]).toEqual(toTell(forger.key.update(1), /a publication of actor that samplers in fp32 can load/));
});
