/** A checkpoint is a copy: the state at the time of the call is written, whatever the trainer does after it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { makeRunId } from '../../../core/ids.ts';
import type { RunId } from '../../../core/ids.ts';
import { stateParts } from '../../../core/records/state-parts.ts';
import { checkpointManifest } from '../../../core/records/schema.ts';
import { stateDigests } from '../../../tests/state-digests.ts';
import type { StateDigests } from '../../../log/objects/digest.ts';
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import { SharedMemory } from '../../../infra/shared-memory.ts';
import { openFolderStore } from '../../../infra/store/folder.ts';
import { needRecord } from '../../../log/objects/records.ts';
import { readDecoderSpec } from '../../../native/model/config.ts';
import { createTrainer } from '../../../native/index.ts';
import { CheckpointCopies } from './checkpoint-copies.ts';
import { CheckpointWriter } from './checkpoint-writer.ts';
import { checkpointSource } from './checkpoint.ts';
import { NativePolicy } from '../engines/native/policy.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-writer-'));
afterAll(() => rmSync(folder, { recursive: true }));

const shape = {
  num_hidden_layers: 2,
  hidden_size: 32,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  intermediate_size: 64,
  vocab_size: 64,
  max_position_embeddings: 64,
};
const config = readDecoderSpec(
  { architectures: ['LlamaForCausalLM'], model_type: 'llama', rms_norm_eps: 1e-6, tie_word_embeddings: true, ...shape },
  'test',
);

function openPolicy(): NativePolicy {
  const policy = new NativePolicy(
    createTrainer(config, { compute: 'fp32', deterministic: true, threads: 1, trainable: true }),
  );
  change(policy, 1);
  return policy;
}

function change({ trainer, elements }: NativePolicy, by: number): void {
  stateParts.forEach((part, p) =>
    trainer.write(
      part,
      new Float32Array(elements).map((_, i) => by + p + i / 7),
    ),
  );
}

function digestsOf({ trainer }: NativePolicy): StateDigests {
  const [weights, m, v] = [trainer.read('weights'), trainer.read('m'), trainer.read('v')];
  return stateDigests({ weights, m, v, steps: trainer.steps });
}

const stateOf = (policy: NativePolicy) => ({ engines: { actor: policy }, blockHash: 'sha256' }) as const;
const runDigests = (digests: StateDigests) => ({ ...digests, components: { actor: digests } });

describe('a checkpoint written beside training', () => {
  const placeOf = (runId: RunId, iteration: number) => ({ store: folder, runId, term: 1, iteration });

  it('contains the state at the time of the call, also while an earlier one is being written', async () => {
    const [store, policy, writer] = [await openFolderStore(folder), openPolicy(), new CheckpointWriter()];
    const runId = makeRunId('beside', new Date(0), '0001');
    const writing = [];
    for (const iteration of [1, 2, 3]) {
      change(policy, iteration);
      const digests = digestsOf(policy);
      writer.prepare(policy);
      writing.push({
        digests,
        ...(await writer.write(placeOf(runId, iteration), stateOf(policy), runDigests(digests))),
      });
    }
    change(policy, 9);
    for (const { digests, written } of writing) {
      const { record } = await needRecord(store, (await written).saved.manifest ?? '', checkpointManifest);
      const into = openPolicy();
      await into.load(checkpointSource(store, runId, record, into, () => {}));
      expect(digestsOf(into)).toEqual(digests);
    }
    writer.release();
  });

  it('is read from shared memory where the engine copies itself there, and gives it back', async () => {
    const [store, policy, writer] = [await openFolderStore(folder), openPolicy(), new CheckpointWriter()];
    const memory = new SharedMemory();
    const runId = makeRunId('shared', new Date(0), '0005');
    let free: Promise<void> = Promise.resolve();
    let copies = 0;
    /** A copy waits until the one before is released, as with an engine of another process. */
    const copy = async () => {
      await free;
      let release = () => {};
      free = new Promise((resolve) => (release = resolve));
      expect(memory.reserve(12 * policy.elements)).toBe(true);
      const starts = stateParts.map((_, i) => 4 * i * policy.elements);
      for (const [i, part] of stateParts.entries()) memory.write(starts[i] ?? 0, policy.trainer.read(part));
      copies++;
      return { fd: memory.fd, starts, release };
    };
    const engine: PolicyEngine = Object.assign(policy, { copy });
    const writing = [];
    for (const iteration of [1, 2]) {
      change(policy, iteration);
      const digests = digestsOf(policy);
      const state = { engines: { actor: engine }, blockHash: 'sha256' } as const;
      const place = placeOf(runId, iteration);
      writing.push({ digests, ...(await writer.write(place, state, runDigests(digests))) });
    }
    for (const { digests, written } of writing) {
      const { record } = await needRecord(store, (await written).saved.manifest ?? '', checkpointManifest);
      const into = openPolicy();
      await into.load(checkpointSource(store, runId, record, into, () => {}));
      expect(digestsOf(into)).toEqual(digests);
    }
    const refused = await writer.write(
      placeOf('../elsewhere' as RunId, 3),
      { engines: { actor: engine }, blockHash: 'sha256' },
      runDigests(digestsOf(policy)),
    );
    await expect(refused.written).rejects.toThrow();
    await free;
    expect(copies).toBe(3);
    memory.close();
    writer.release();
  });

  it('is completed after its trainer was closed, and another trainer can use the writer', async () => {
    const [first, second, writer] = [openPolicy(), openPolicy(), new CheckpointWriter()];
    const runId = makeRunId('closed', new Date(0), '0002');
    const write = async (policy: NativePolicy, iteration: number) =>
      writer.write(placeOf(runId, iteration), stateOf(policy), runDigests(digestsOf(policy)));
    const { written } = await write(first, 1);
    await first.close();
    writer.release();
    expect((await written).saved.manifest).toContain(runId);
    expect((await (await write(second, 2)).written).saved.manifest).toContain(runId);
    writer.release();
  });

  it('waits for memory that is being prepared, instead of taking more', async () => {
    const [policy, writer] = [openPolicy(), new CheckpointWriter()];
    const given = vi.spyOn(CheckpointCopies.prototype, 'giveBack');
    writer.prepare(policy);
    const place = placeOf(makeRunId('prepared', new Date(0), '0004'), 1);
    const { written } = await writer.write(place, stateOf(policy), runDigests(digestsOf(policy)));
    expect(given).toHaveBeenCalledOnce();
    await written;
    given.mockRestore();
    writer.release();
  });

  it('passes the store’s error on, and writes the next one', async () => {
    const [policy, writer] = [openPolicy(), new CheckpointWriter()];
    const [runId, digests] = [makeRunId('refused', new Date(0), '0003'), digestsOf(policy)];
    const { written } = await writer.write(placeOf('../elsewhere', 1), stateOf(policy), runDigests(digests));
    await expect(written).rejects.toMatchObject({
      kind: 'terminal',
      code: 'InvalidInput',
    });
    const next = await writer.write(placeOf(runId, 1), stateOf(policy), runDigests(digests));
    expect((await next.written).saved.manifest).toContain(runId);
    writer.release();
  });
});

describe('the memory of copies', () => {
  it('is kept for the next copy, once per engine, until the engine is closed', async () => {
    const [copies, policy] = [new CheckpointCopies(), openPolicy()];
    const [first, second] = [await copies.copy(policy), await copies.copy(policy)];
    expect(second).not.toBe(first);
    copies.giveBack(first);
    copies.giveBack(second);
    expect(copies.hasRoomFor(policy)).toBe(true);
    expect(await copies.copy(policy)).toBe(first);
    expect(copies.hasRoomFor(policy)).toBe(false);
    copies.giveBack(first);
    expect(copies.empty()).toBe(first);
    copies.giveBack(second);
    expect(copies.empty()).toBeUndefined();
  });
});
