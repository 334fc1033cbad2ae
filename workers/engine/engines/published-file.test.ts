/** A publication as a file: what comes out is what came in, named as its engine names it, whatever the pieces. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../../core/at.ts';
import type { StateSource } from '../../../core/ports/policy.ts';
import { publishedBytes, publishedTensors } from '../../../core/records/publications.ts';
import { machineBytes } from '../../../infra/machine-memory.ts';
import { openSafetensors } from '../../../models/safetensors.ts';
import { saveRandomModel } from '../../../tests/random-model.ts';
import { treeDigest } from '../../../log/objects/digest.ts';
import { randomOf } from '../../../native/testing/decoders.ts';
import { MemoryPlan } from './memory-plan.ts';
import { nativeEngines } from './native/index.ts';
import { publicationRoot } from './roots.ts';
import { parametersOf, rowsOfTokens } from './http/parameters.ts';
import { PublishedFile } from './published-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-published-file-'));
const sizes = {
  hidden_size: 12,
  intermediate_size: 20,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  vocab_size: 19,
  max_position_embeddings: 32,
};
const native = nativeEngines(new MemoryPlan(machineBytes()));
const { computes } = native.facts();
let files = 0;
const fresh = () => join(folder, `${files++}.safetensors`);

beforeAll(async () => {
  await saveRandomModel(join(folder, 'tied'), sizes, 0.3);
  await saveRandomModel(join(folder, 'own'), { ...sizes, tie_word_embeddings: false }, 0.3);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe.each(['tied', 'own'])('a model with a head that is %s', (name) => {
  it.each(computes)('has the parameters that the native engine publishes in %s, and their digest', async (compute) => {
    const format = compute === 'bf16' ? 'BF16' : 'F32';
    const model = join(folder, name);
    const parameters = await parametersOf(model, compute);
    const options = { compute, deterministic: true, threads: 1, trainable: false } as const;
    const policy = await native.open({ folder: model, head: 'tokens' }, options);
    await policy.load({ type: 'folder', folder: model });
    expect(parameters).toEqual(policy.parameters.map((one) => expect.objectContaining({ ...one }) as unknown));
    const bytes = new Uint8Array(publishedBytes(policy.parameters, format));
    await policy.readPublished(format, 0, bytes);
    const root = await publicationRoot(policy, format, 'sha256');
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length)), async (cuts) => {
        const file = await PublishedFile.create(fresh(), parameters, format);
        const source: StateSource = {
          type: 'published',
          format,
          read: async (sinkOf) => {
            const ends = [...new Set([...cuts, bytes.length])].sort((a, b) => a - b);
            for (const [i, end] of ends.entries()) {
              const start = i === 0 ? 0 : at(ends, i - 1);
              if (start < end) await sinkOf(start, end)(bytes.subarray(start, end));
            }
          },
        };
        await file.fill(source, 'sha256');
        expect(await file.digest('sha256')).toBe(root);
        const some = new Uint8Array(bytes.length - 5);
        await file.read(5, some);
        expect(Buffer.from(some).equals(bytes.subarray(5))).toBe(true);
        await file.close();
      }),
      { numRuns: 15 },
    );
    await policy.close();
  });
});

it('mirrors the rows of tokens, and nothing else', async () => {
  const model = join(folder, 'own');
  const parameters = await parametersOf(model, 'fp32');
  const rows = rowsOfTokens(parameters, sizes.vocab_size);
  expect([...rows].sort()).toEqual(['lm_head.weight', 'model.embed_tokens.weight']);
  const [path, mirroredPath] = [fresh(), fresh()];
  const file = await PublishedFile.create(path, parameters, 'F32');
  await file.fill({ type: 'folder', folder: model }, 'sha256');
  const mirrored = await PublishedFile.create(mirroredPath, parameters, 'F32');
  await mirrored.fillMirrored(file, rows);
  for (const { name, shape, firstByte, endByte } of publishedTensors(parameters, 'F32')) {
    const [own, other] = [Buffer.alloc(endByte - firstByte), Buffer.alloc(endByte - firstByte)];
    await file.read(firstByte, own);
    await mirrored.read(firstByte, other);
    const rowBytes = own.length / (shape[0] ?? 1);
    const expected = rows.has(name)
      ? Buffer.concat(
          Array.from({ length: shape[0] ?? 1 }, (_, row) =>
            own.subarray(own.length - (row + 1) * rowBytes, own.length - row * rowBytes),
          ),
        )
      : own;
    expect(other.equals(expected), name).toBe(true);
  }
  await file.close();
  await mirrored.close();
});

it('is a file that the reader of model folders takes', async () => {
  const parameters = await parametersOf(join(folder, 'tied'), 'fp32');
  const own = mkdtempSync(join(folder, 'model-'));
  const file = await PublishedFile.create(join(own, 'model.safetensors'), parameters, 'F32');
  await file.fill({ type: 'folder', folder: join(folder, 'tied') }, 'sha256');
  await file.close();
  const [one, two] = [await openSafetensors(own), await openSafetensors(join(folder, 'tied'))];
  expect([...one.tensors.keys()].sort()).toEqual([...two.tensors.keys()].sort());
  for (const name of one.tensors.keys()) {
    const [a, b] = [Buffer.from([]), Buffer.from([])].map(() => [] as Uint8Array[]);
    for await (const piece of one.stream(name)) a?.push(piece.slice());
    for await (const piece of two.stream(name)) b?.push(piece.slice());
    expect(Buffer.concat(a ?? []).equals(Buffer.concat(b ?? [])), name).toBe(true);
  }
  await one.close();
  await two.close();
});

it.each([1, 2, 3])(
  'of several blocks has one digest, whatever the pieces and what was there before (seed %i)',
  async (seed) => {
    const mib = 2 ** 20;
    const sizesOf = [5 * mib - 3, 17, 3 * mib];
    const parameters = sizesOf.map((size, i) => ({
      ...{ name: `p${i}`, shape: [size], offset: sizesOf.slice(0, i).reduce((sum, one) => sum + one, 0), size },
      computed: 'F32' as const,
    }));
    const values = Float32Array.from({ length: publishedBytes(parameters, 'F32') / 4 }, (_, i) =>
      Math.fround(i * seed),
    );
    const bytes = new Uint8Array(values.buffer);
    const random = randomOf(seed);
    const file = await PublishedFile.create(fresh(), parameters, 'F32');
    await file.fill(sourceOf(new Uint8Array(bytes.length), [bytes.length]), 'sha256');
    for (let turn = 0; turn < 4; turn++) {
      // Some of the blocks come whole, some in parts.
      const ends = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
        const end = Math.floor(random() * bytes.length);
        return random() < 0.5 ? end : end - (end % (8 * mib));
      });
      await file.fill(sourceOf(bytes, ends), 'sha256');
      expect(await file.digest('sha256', {}, 2)).toBe(treeDigest(values));
      values[Math.floor(random() * values.length)] = turn;
    }
    await file.close();
  },
);

/** A publication in fp32, whose pieces end at these bytes and at the last one. */
const sourceOf = (bytes: Uint8Array, ends: readonly number[]): StateSource => ({
  type: 'published',
  format: 'F32',
  read: async (sinkOf) => {
    const sink = sinkOf(0, bytes.length);
    let start = 0;
    for (const end of [...new Set([...ends, bytes.length])].sort((a, b) => a - b)) {
      if (end > start) await sink(bytes.subarray(start, end));
      start = end;
    }
  },
});
