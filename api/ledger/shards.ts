/**
 * Checks a batch in shards: the index names the plan of the whole, and each shard must be the next micro-batches of it,
 * with their samples and no others. One shard is in memory at a time.
 */
import { at } from './at.ts';
import { neededTensors } from './needed-tensors.ts';
import type { CompositionPorts } from './needed-tensors.ts';
import type { Objects } from './objects.ts';
import { checkSizesOfSamples, checkSizesOfTokens, samplesTensors } from './packing.ts';
import type { Batch } from './records.ts';
import { compareSequences } from './sequences.ts';
import type { BatchRules, Placed } from './sequences.ts';
import { DamagedTensors, floatBits, integers, lengthOf, octets, offsets } from './tensors.ts';
import type { Tensors } from './tensors.ts';

/** `index`: undefined when it is missing or damaged. `samples`: how many the record lists. */
export async function checkShards(
  ports: CompositionPorts,
  batch: Batch,
  key: string,
  index: Tensors | undefined,
  samples: number,
): Promise<void> {
  const { objects, deep } = ports;
  const { shards = [] } = batch;
  const indexKey = objects.keys.blob(batch.tensors);
  if (index !== undefined) checkIndex(objects, indexKey, index, samples, shards.length);
  const plan = index && deep ? objects.tried(indexKey, 'the index of a batch', () => planOf(index)) : undefined;
  const found = new Uint8Array(samples);
  let whole = plan !== undefined;
  for (const [k, digest] of shards.entries()) {
    const where = objects.keys.blob(digest);
    const shard = await neededTensors(ports, batch, digest, key);
    whole &&= shard !== undefined;
    if (shard === undefined) continue;
    objects.tried(where, 'a shard of a batch', () => {
      checkSizesOfSamples(objects, where, shard, lengthOf(shard, 'places'));
      checkSizesOfTokens(objects, where, shard, batch.oldLogProbs === 'stored');
      if (plan !== undefined) checkShard(objects, where, shard, plan, k);
      if (plan !== undefined) for (const place of integers(shard, 'places')) found[place] = 1;
    });
  }
  const absent = whole ? found.indexOf(0) : -1;
  if (absent >= 0) objects.faults.add(key, 'every sample in a shard', `sample ${absent} in none`);
}

/** Compares the samples of every shard with their sources. Returns how many samples there are. */
export async function compareShards(
  ports: CompositionPorts,
  batch: Batch,
  key: string,
  placed: readonly Placed[],
  rules: BatchRules,
): Promise<number> {
  const { objects } = ports;
  for (const digest of new Set(batch.shards)) {
    const where = objects.keys.blob(digest);
    const shard = await neededTensors(ports, batch, digest, key);
    if (shard === undefined) return 0;
    objects.tried(where, 'a shard of a batch', () => {
      const local = new Map(Array.from(integers(shard, 'places'), (place, i) => [place, i] as const));
      compareSequences(objects, where, shard, placed, rules, (place) => local.get(place));
    });
  }
  return placed.length;
}

function checkIndex(objects: Objects, key: string, index: Tensors, samples: number, shards: number): void {
  objects.tried(key, 'the index of a batch', () => {
    objects.faults.equal(key, 'length of valid:', samples, lengthOf(index, 'valid'));
    objects.faults.equal(key, 'length of shard_micros:', shards + 1, lengthOf(index, 'shard_micros'));
  });
}

/** What the index says of the whole batch. */
interface Plan {
  readonly index: Tensors;
  readonly members: Int32Array;
  readonly micros: Int32Array;
  readonly steps: Int32Array;
  readonly shards: Int32Array;
  readonly lengths: readonly Int32Array[];
  readonly valid: Int32Array;
}

function planOf(index: Tensors): Plan {
  const members = integers(index, 'micro_samples');
  const micros = offsets(index, 'micro_offsets', members.length);
  return {
    index,
    members,
    micros,
    steps: offsets(index, 'step_offsets', micros.length - 1),
    shards: offsets(index, 'shard_micros', micros.length - 1),
    lengths: lengthsIn(index),
    valid: integers(index, 'valid'),
  };
}

/** Tokens and response tokens of each sample. */
const lengthsIn = (tensors: Tensors): Int32Array[] =>
  ['offsets', 'scored_offsets'].map((name) => {
    const ends = integers(tensors, name);
    return ends.subarray(1).map((end, b) => end - at(ends, b));
  });

/** Order, plan and totals of shard k. */
function checkShard({ faults }: Objects, key: string, shard: Tensors, plan: Plan, k: number): void {
  const places = integers(shard, 'places');
  const samples = plan.valid.length;
  const members = integers(shard, 'micro_samples');
  requireIndices(places, samples);
  requireIndices(members, places.length);
  if (new Set(places).size !== places.length) faults.add(key, 'each sample once in a shard', 'one occurs twice');
  const [from, to] = [at(plan.shards, k), at(plan.shards, k + 1)];
  const [first, end] = [at(plan.micros, from), at(plan.micros, to)];
  const wanted = {
    micro_samples: plan.members.slice(first, end),
    micro_offsets: plan.micros.slice(from, to + 1).map((offset) => offset - first),
    step_offsets: Int32Array.from(
      to === from ? [0] : [from, ...plan.steps.filter((m) => m > from && m < to), to].map((m) => m - from),
    ),
  };
  const own = {
    micro_samples: members.map((b) => at(places, b)),
    micro_offsets: integers(shard, 'micro_offsets'),
    step_offsets: integers(shard, 'step_offsets'),
  };
  for (const name of ['micro_samples', 'micro_offsets', 'step_offsets'] as const)
    if (!same(wanted[name], own[name])) faults.add(key, `${name} of shard ${k}, as in the index`, 'others');
  checkSamples(faults, key, shard, plan, places);
}

function requireIndices(values: Int32Array, count: number): void {
  const outside = values.find((value) => value < 0 || value >= count);
  if (outside !== undefined) throw new DamagedTensors(`sample ${outside} of ${count}`);
}

/** Each sample has the lengths, the valid tokens and the values that the index says. */
function checkSamples(faults: Objects['faults'], key: string, shard: Tensors, plan: Plan, places: Int32Array): void {
  const of = (values: Int32Array) => places.map((place) => at(values, place));
  const lengths = lengthsIn(shard);
  lengths.forEach((own, i) => {
    if (!same(own, of(at(plan.lengths, i)))) faults.add(key, 'samples as long as in the index', 'other lengths');
  });
  if (!same(validIn(shard), of(plan.valid))) faults.add(key, 'valid tokens as in the index', 'others');
  for (const name of ['rewards', ...samplesTensors]) {
    if (!plan.index.entries.has(name) && !shard.entries.has(name)) continue;
    const values = name === 'groups' ? integers : floatBits;
    if (!same(values(shard, name), of(values(plan.index, name))))
      faults.add(key, `${name} as in the index`, 'other values');
  }
}

function validIn(shard: Tensors): Int32Array {
  const mask = octets(shard, 'mask');
  const ends = offsets(shard, 'scored_offsets', mask.length);
  return Int32Array.from({ length: ends.length - 1 }, (_, b) =>
    mask.subarray(at(ends, b), at(ends, b + 1)).reduce((sum, one) => sum + one, 0),
  );
}

const same = (a: Int32Array, b: Int32Array): boolean => a.length === b.length && a.every((value, i) => value === b[i]);
