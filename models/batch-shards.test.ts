/** A batch and its shards hold the same: laws for every batch and every plan. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { at } from '../core/at.ts';
import { arbitraryBatch } from './batch.test-support.ts';
import { batchBytes, checkShard, decodeIndex, divideBatch, encodeIndex, indexOf, shardOf } from './batch-shards.ts';
import { decodeBatch, encodeBatch } from './batch-tensors.ts';
import type { BatchTensors } from './batch-tensors.ts';

const origin = { iteration: 3, parentState: 'a'.repeat(64) };
const anyBatch = fc.record({ made: arbitraryBatch, mostBytes: fc.integer({ min: 100, max: 3000 }) });

const stored = (batch: BatchTensors): BatchTensors => decodeBatch(encodeBatch(batch, origin), 'test');

/** Everything that a sample has, by the names of its tensors. */
function sampleOf(batch: BatchTensors, i: number): Record<string, unknown> {
  const [start, end] = [at(batch.offsets_S1, i), at(batch.offsets_S1, i + 1)];
  const [from, to] = [at(batch.scoredOffsets_S1, i), at(batch.scoredOffsets_S1, i + 1)];
  const tokens = batch.scored_T.length;
  const own = Object.entries(batch).flatMap(([name, values]): [string, unknown][] => {
    if (name === 'places_S' || !ArrayBuffer.isView(values)) return [];
    const data = values as Float32Array;
    if (name === 'tokens_N') return [[name, [...data.subarray(start, end)]]];
    if (name === 'scored_T') return [[name, [...data.subarray(from, to)].map((token) => token - start)]];
    if (name.endsWith('_S')) return [[name, data[i]]];
    const width = data.length / Math.max(1, tokens);
    return /_TK?$/.test(name) ? [[name, [...data.subarray(from * width, to * width)]]] : [];
  });
  const columns = Object.entries(batch.tokenColumns ?? {}).map(([name, { data, width }]) => {
    return [name, [...data.subarray(from * width, to * width)]];
  });
  return Object.fromEntries([...own, ...columns]) as Record<string, unknown>;
}

describe('a batch in shards (seed 7)', () => {
  it('has every micro-batch in order, every sample as it was, and no shard over the limit', () => {
    fc.assert(
      fc.property(anyBatch, ({ made: { batch, epochs }, mostBytes }) => {
        const ranges = divideBatch(batch, epochs, mostBytes);
        const seen = new Set<number>();
        const members: number[] = [];
        for (const range of ranges) {
          const shard = stored(shardOf(batch, range));
          const places = shard.places_S ?? new Int32Array();
          places.forEach((b, i) => expect(sampleOf(shard, i)).toEqual(sampleOf(batch, b)));
          for (const b of places) seen.add(b);
          members.push(...Array.from(shard.microSamples, (b) => at(places, b)));
          const isSingle = range.to - range.from === 1 || places.length === 1;
          if (!isSingle) expect(batchBytes(shard)).toBeLessThanOrEqual(mostBytes);
        }
        expect(members).toEqual([...batch.microSamples]);
        expect(seen.size).toBe(batch.rewards_S.length);
      }),
      { seed: 7, numRuns: 80 },
    );
  });

  it('has an index from which the shards are checked', () => {
    fc.assert(
      fc.property(anyBatch, ({ made: { batch, epochs }, mostBytes }) => {
        const ranges = divideBatch(batch, epochs, mostBytes);
        const made = indexOf(batch, Int32Array.from([0, ...ranges.map(({ to }) => to)]));
        const index = decodeIndex(encodeIndex(made, origin), 'test', ranges.length);
        expect(index).toEqual(made);
        ranges.forEach((range, k) => checkShard(shardOf(batch, range), index, k, 'test'));
        expect(() => decodeIndex(encodeIndex(made, origin), 'test', ranges.length + 1)).toThrow(/shard_micros/);
        const other = shardOf(batch, at(ranges, 0));
        const moved = { ...other, places_S: other.places_S?.map((b) => (b + 1) % batch.rewards_S.length) };
        if (batch.rewards_S.length > 1) expect(() => checkShard(moved as BatchTensors, index, 0, 'test')).toThrow();
      }),
      { seed: 7, numRuns: 20 },
    );
  });

  it('has the same shards in equal epochs', () => {
    fc.assert(
      fc.property(anyBatch, ({ made: { batch }, mostBytes }) => {
        const steps = [...batch.stepOffsets_U1];
        const micros = at(steps, -1);
        const twice: BatchTensors = {
          ...batch,
          stepOffsets_U1: Int32Array.from([...steps, ...steps.slice(1).map((m) => m + micros)]),
          microOffsets_M1: Int32Array.from([
            ...batch.microOffsets_M1,
            ...batch.microOffsets_M1.subarray(1).map((offset) => offset + batch.microSamples.length),
          ]),
          microSamples: Int32Array.from([...batch.microSamples, ...batch.microSamples]),
        };
        const shards = divideBatch(twice, 2, mostBytes)
          .filter(({ from, to }) => to > from)
          .map((range) => encodeBatch(shardOf(twice, range), origin));
        expect(shards.slice(shards.length / 2)).toEqual(shards.slice(0, shards.length / 2));
      }),
      { seed: 7, numRuns: 20 },
    );
  });
});
