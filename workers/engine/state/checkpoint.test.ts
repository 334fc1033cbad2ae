/** A checkpoint records which elements are in which shard, so any division into shards loads to the same state. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { makeRunId } from '../../../core/ids.ts';
import { mapComponents, shardsOf } from '../../../core/records/components.ts';
import { checkpointManifest } from '../../../core/records/schema.ts';
import { snapshotOf, stateDigests } from '../../../tests/state-digests.ts';
import { runStateOf } from '../../../log/objects/digest.ts';
import { openFolderStore } from '../../../infra/store/folder.ts';
import { needRecord } from '../../../log/objects/records.ts';
import { filling } from '../../../tests/filling.ts';
import { checkpointSource, saveCheckpoint } from './checkpoint.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-shards-'));
afterAll(() => rmSync(folder, { recursive: true }));
let runs = 0;

describe('a checkpoint', () => {
  it('of one or two components, with any number of shards, loads to the same state, bit for bit', async () => {
    const store = await openFolderStore(folder);
    const values = fc.float32Array({ minLength: 1, maxLength: 24 });
    await fc.assert(
      fc.asyncProperty(
        values,
        fc.option(values),
        fc.nat(1000),
        fc.array(fc.integer({ min: 1, max: 25 }), { minLength: 2, maxLength: 3 }),
        async (actor, critic, steps, cuts) => {
          const components = mapComponents({ actor, ...(critic && { critic }) }, (weights, name) => {
            const own = name === 'actor' ? steps : steps + 1;
            const state = { weights, m: weights.map((one) => one / 3), v: weights.map((one) => one * 2), steps: own };
            const parameters = [{ name: 'w', shape: [weights.length], offset: 0, size: weights.length }];
            return snapshotOf(state, parameters);
          });
          const stateDigest = runStateOf(mapComponents(components, ({ digests }) => digests));
          for (const elements of cuts) {
            const runId = makeRunId('cut', new Date(0), (runs++).toString(16).padStart(4, '0'));
            const place = { store, runId, term: 1, iteration: 1, shardBytes: 4 * elements };
            const { record } = await needRecord(
              store,
              await saveCheckpoint(place, stateDigest, components),
              checkpointManifest,
            );
            const shards = [actor, ...(critic ? [critic] : [])].map(({ length }) => 3 * Math.ceil(length / elements));
            expect(shardsOf(record)).toHaveLength(shards.reduce((sum, count) => sum + count, 0));
            for (const [name, { parts, parameters, digests }] of Object.entries(components)) {
              const size = parts[0]?.elements ?? 0;
              const into = { weights: new Float32Array(size), m: new Float32Array(size), v: new Float32Array(size) };
              const source = checkpointSource(store, runId, record, { parameters, parts }, () => {}, name);
              if (source.type !== 'pieces') throw new Error('a checkpoint consists of pieces');
              await source.read(({ part, start, end }) =>
                filling(into[part as keyof typeof into].subarray(start, end)),
              );
              expect(stateDigests({ ...into, steps: source.steps })).toEqual(digests);
            }
          }
        },
      ),
      { numRuns: 15 },
    );
  });
});
