/** A checkpoint records which elements are in which shard, so any division into shards loads to the same state. */
import { shardsOf } from '../../core/records/components.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { makeRunId } from '../../core/ids.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import { stateDigests } from '../../tests/state-digests.ts';
import { openFolderStore } from '../../infra/store/folder.ts';
import { needRecord } from '../../infra/store/records.ts';
import { filling } from '../../models/safetensors.ts';
import { checkpointSource, saveCheckpoint } from './checkpoint.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-shards-'));
afterAll(() => rmSync(folder, { recursive: true }));
let runs = 0;

describe('a checkpoint', () => {
  it('written with any number of shards loads to the same state, bit for bit', async () => {
    const store = await openFolderStore(folder);
    const values = fc.float32Array({ minLength: 1, maxLength: 24 });
    await fc.assert(
      fc.asyncProperty(
        values,
        fc.nat(1000),
        fc.array(fc.integer({ min: 1, max: 25 }), { minLength: 2, maxLength: 3 }),
        async (weights, steps, cuts) => {
          const state = { weights, m: weights.map((value) => value / 3), v: weights.map((value) => value * 2), steps };
          const digests = stateDigests(state);
          const parameters = [{ name: 'w', shape: [weights.length], offset: 0, size: weights.length }];
          for (const elements of cuts) {
            const runId = makeRunId('cut', new Date(0), (runs++).toString(16).padStart(4, '0'));
            const key = await saveCheckpoint(
              { store, runId, term: 1, iteration: 1, shardBytes: 4 * elements },
              { ...state, parameters, digests },
            );
            const { record } = await needRecord(store, key, checkpointManifest);
            expect(shardsOf(record)).toHaveLength(3 * Math.ceil(weights.length / elements));
            const into = {
              weights: new Float32Array(weights.length),
              m: new Float32Array(weights.length),
              v: new Float32Array(weights.length),
            };
            const target = { parameters, elements: weights.length };
            const source = checkpointSource(store, runId, record, target, () => {});
            if (source.type !== 'pieces') throw new Error('a checkpoint consists of pieces');
            await source.read(({ part, start, end }) => filling(into[part].subarray(start, end)));
            expect(stateDigests({ ...into, steps: source.steps })).toEqual(digests);
          }
        },
      ),
      { numRuns: 15 },
    );
  });
});
