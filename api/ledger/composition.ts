/**
 * Checks what a batch consists of: its results, its tensors, and, when everything is read, that both hold the same
 * samples.
 */
import { at } from './at.ts';
import { neededTensors } from './needed-tensors.ts';
import type { CompositionPorts } from './needed-tensors.ts';
import type { Objects } from './objects.ts';
import { packed } from './packing.ts';
import { scoreTableShape } from './records.ts';
import type { Batch, Revision } from './records.ts';
import type { Part } from './results.ts';
import { compareSequences, placedSamples, sourceName, sourcesOf } from './sequences.ts';
import type { RewardMix, Source, Sources } from './sequences.ts';
import { checkShards, compareShards } from './shards.ts';

/** `weights`: the weights at the position before. Returns how many samples were compared with their source. */
export async function checkComposition(
  ports: CompositionPorts,
  batch: Batch,
  key: string,
  revision: Revision | undefined,
  weights: string | undefined,
): Promise<number> {
  const { objects, deep } = ports;
  const parts = await ports.results.ofBatch(batch, key);
  const tensorsKey = objects.keys.blob(batch.tensors);
  const tensors = await neededTensors(ports, batch, batch.tensors, key);
  const samples = batch.draws.flatMap((draw) => draw.samples.filter((one) => typeof one === 'number')).length;
  if (tensors !== undefined) packed(objects, tensorsKey, tensors, batch, samples, deep ? revision : undefined);
  objects.faults.equal(key, 'format 4, of a batch in shards:', batch.shards !== undefined, batch.format === 4);
  if (batch.shards !== undefined) await checkShards(ports, batch, key, tensors, samples);
  if (revision === undefined) return 0;
  if (revision.recipe.kind === 'rl') checkCounts(objects, batch, key, parts);
  if (batch.baselines !== undefined) await checkBaselines(ports, batch, key, batch.baselines);
  const sources =
    revision.recipe.kind === 'rl'
      ? await sampledSources(ports, batch, key, revision, parts, weights)
      : await rowSources(ports, batch, revision);
  if (!deep || sources === undefined || tensors === undefined) return 0;
  const rules = { rejects: rejectsTokens(revision), mix: rewardMixOf(revision) };
  const placed = placedSamples(objects, batch, key, sources);
  if (batch.shards !== undefined) return compareShards(ports, batch, key, placed, rules);
  return (
    objects.tried(tensorsKey, 'tensors of a batch', () => {
      compareSequences(objects, tensorsKey, tensors, placed, rules);
      return placed.length;
    }) ?? 0
  );
}

/** The policy loss of `bypass_mode` rejects tokens by itself, and not in the batch. */
function rejectsTokens({ recipe }: Revision): boolean {
  const { rollout_rs: statistics = null, bypass_mode: bypass = false } = recipe.algorithm?.rollout_correction ?? {};
  return statistics !== null && !bypass;
}

/** How a reward follows from the scores of a reward model and of the scorer. */
function rewardMixOf({ inputs, recipe }: Revision): RewardMix | undefined {
  const { weight = 1, scorer_weight: scorerWeight = 0 } = recipe.reward?.reward_model ?? {};
  return inputs.rewardModel === undefined ? undefined : { weight, scorerWeight };
}

/** The results that a batch names must contain exactly the draws of the batch. */
function checkCounts({ faults }: Objects, batch: Batch, key: string, parts: readonly Part[]): void {
  if (parts.length * 2 !== batch.results.length - 1) return;
  const [sampled, named] = [
    parts.reduce((sum, part) => sum + part.samples, 0),
    batch.draws.reduce((sum, { samples }) => sum + samples.length, 0),
  ];
  faults.equal(key, 'samples in the results that it names:', sampled, named);
}

/** One greedy response to each draw. */
async function checkBaselines(
  { objects, results }: CompositionPorts,
  { draws }: Batch,
  key: string,
  baselines: readonly string[],
): Promise<void> {
  const parts = await results.parts(baselines, key);
  if (parts.length * 2 !== baselines.length) return;
  const sampled = parts.reduce((sum, part) => sum + part.samples, 0);
  objects.faults.equal(key, 'greedy responses in the results that it names:', draws.length, sampled);
}

/** Undefined when a part is missing or damaged, or when the data was not read. */
async function sampledSources(
  ports: CompositionPorts,
  batch: Batch,
  key: string,
  revision: Revision,
  parts: readonly Part[],
  weights: string | undefined,
): Promise<Sources | undefined> {
  const { objects, deep, absent } = ports;
  const all = new Map<string, Source>();
  let whole = parts.length * 2 === batch.results.length - 1;
  for (const { trajectories, scores, samples, failed } of parts) {
    const where = objects.keys.blob(trajectories);
    const tensors = await neededTensors(ports, batch, trajectories, key);
    if (tensors !== undefined && weights !== undefined)
      objects.faults.equal(where, 'weights that it was sampled from:', weights, tensors.metadata['weights']);
    const there = (await objects.size(objects.keys.blob(scores))) !== undefined;
    if (!there) absent(batch.iteration, objects.keys.blob(scores), key);
    const table = there && deep ? await objects.json(scores, scoreTableShape) : undefined;
    const sources = tensors && table && objects.tried(where, 'trajectories', () => sourcesOf(tensors, table));
    whole &&= sources !== undefined;
    if (sources === undefined) continue;
    objects.faults.equal(where, 'samples', samples, sources.size);
    objects.faults.equal(
      objects.keys.blob(scores),
      'failed samples',
      failed,
      [...sources.values()].filter(({ score }) => score === null).length,
    );
    for (const [name, source] of sources) all.set(name, source);
  }
  return whole && deep ? withPrompts(ports, batch, revision, all) : undefined;
}

/** Prompts must be the prompts of the rows. A draw whose samples all failed may have no prompt. */
async function withPrompts(
  { objects, inputs }: CompositionPorts,
  batch: Batch,
  revision: Revision,
  sources: Sources,
): Promise<Sources> {
  const dataset = await inputs.rows(revision.inputs.train);
  if (dataset === undefined) return sources;
  const tokens = await dataset.tokens(
    batch.draws.map(({ row }) => row),
    revision.inputs.model,
  );
  for (const [i, { draw, row, samples }] of batch.draws.entries()) {
    const wanted = tokens?.[i]?.prompt;
    samples.forEach((place, s) => {
      const prompt = sources.get(sourceName(draw, s))?.prompt;
      if (typeof place !== 'number' || prompt === undefined || wanted === undefined) return;
      if (wanted.length !== prompt.length || wanted.some((token, i) => token !== prompt[i]))
        objects.faults.add(
          objects.keys.batch(batch.term, batch.iteration),
          `the prompt of row ${row} for draw ${draw}`,
          'another prompt',
        );
    });
  }
  return sources;
}

/**
 * Given responses are learnt as they are, so the sequences are compared with the rows; a pair has the chosen one first.
 */
async function rowSources(
  { inputs, deep }: CompositionPorts,
  batch: Batch,
  revision: Revision,
): Promise<Sources | undefined> {
  const rows = deep ? await inputs.rows(revision.inputs.train) : undefined;
  const tokens = await rows?.tokens(
    batch.draws.map(({ row }) => row),
    revision.inputs.model,
  );
  return (
    tokens &&
    new Map(
      batch.draws.flatMap(({ draw, row }, i) => {
        const { prompt, response = new Int32Array(), rejected } = at(tokens, i);
        const given = [{ prompt, response }, ...(rejected === undefined ? [] : [rejected])];
        return given.map((one, s) => [sourceName(draw, s), { row, ...one }] as const);
      }),
    )
  );
}
