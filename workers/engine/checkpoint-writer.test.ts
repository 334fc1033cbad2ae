/** A checkpoint is a copy: the state at the time of the call is written, whatever the trainer does after it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeRunId } from '../../core/ids.ts';
import type { RunId } from '../../core/ids.ts';
import type { TrainerEngine } from '../../core/ports.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import { stateDigests } from '../../tests/state-digests.ts';
import { openFolderStore } from '../../infra/store/folder.ts';
import { needRecord } from '../../infra/store/records.ts';
import { readDecoderSpec } from '../../models/config.ts';
import { createTrainer } from '../../native/index.ts';
import { CheckpointCopies } from './checkpoint-copies.ts';
import { CheckpointWriter } from './checkpoint-writer.ts';
import { loadCheckpoint } from './checkpoint.ts';

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

function openTrainer(): TrainerEngine {
  const trainer = createTrainer(config, { compute: 'fp32', deterministic: true, threads: 1, trainable: true });
  change(trainer, 1);
  return trainer;
}

function change({ weights, m, v }: TrainerEngine, by: number): void {
  [weights, m, v].forEach((part, p) => part.forEach((_, i) => (part[i] = Math.fround(by + p + i / 7))));
}

describe('a checkpoint written beside training', () => {
  const placeOf = (runId: RunId, iteration: number) => ({ store: folder, runId, term: 1, iteration });

  it('contains the state at the time of the call, also while an earlier one is being written', async () => {
    const [store, trainer, writer] = [await openFolderStore(folder), openTrainer(), new CheckpointWriter()];
    const runId = makeRunId('beside', new Date(0), '0001');
    const writing = [1, 2, 3].map((iteration) => {
      change(trainer, iteration);
      const digests = stateDigests(trainer);
      writer.prepare(trainer);
      return { digests, written: writer.write(placeOf(runId, iteration), trainer, digests) };
    });
    change(trainer, 9);
    for (const { digests, written } of writing) {
      const { record } = await needRecord(store, (await written).manifest, checkpointManifest);
      const into = openTrainer();
      await loadCheckpoint(store, runId, record, into, () => {});
      expect(stateDigests(into)).toEqual(digests);
    }
    writer.release();
  });

  it('is completed after its trainer was closed, and another trainer can use the writer', async () => {
    const [first, second, writer] = [openTrainer(), openTrainer(), new CheckpointWriter()];
    const runId = makeRunId('closed', new Date(0), '0002');
    const written = writer.write(placeOf(runId, 1), first, stateDigests(first));
    first.close();
    writer.release();
    expect((await written).manifest).toContain(runId);
    expect((await writer.write(placeOf(runId, 2), second, stateDigests(second))).manifest).toContain(runId);
    writer.release();
  });

  it('passes the store’s error on, and writes the next one', async () => {
    const [trainer, writer] = [openTrainer(), new CheckpointWriter()];
    const [runId, digests] = [makeRunId('refused', new Date(0), '0003'), stateDigests(trainer)];
    await expect(writer.write(placeOf('../elsewhere', 1), trainer, digests)).rejects.toMatchObject({
      kind: 'terminal',
      code: 'InvalidInput',
    });
    expect((await writer.write(placeOf(runId, 1), trainer, digests)).manifest).toContain(runId);
    writer.release();
  });
});

describe('the memory of copies', () => {
  it('is kept for the next copy, once per trainer, until the trainer is closed', () => {
    const [copies, trainer] = [new CheckpointCopies(), openTrainer()];
    const [first, second] = [copies.copy(trainer), copies.copy(trainer)];
    expect(second).not.toBe(first);
    copies.giveBack(first);
    copies.giveBack(second);
    expect(copies.hasRoomFor(trainer)).toBe(true);
    expect(copies.copy(trainer)).toBe(first);
    expect(copies.hasRoomFor(trainer)).toBe(false);
    copies.giveBack(first);
    expect(copies.empty()).toBe(first);
    copies.giveBack(second);
    expect(copies.empty()).toBeUndefined();
  });
});
