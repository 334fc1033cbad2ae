/**
 * Checks that a batch trains on what was sampled: each place of the batch is compared, token by token and bit by bit,
 * with the trajectory of its draw and sample. In supervised training it is compared with the row.
 */
import { at } from './at.ts';
import type { Objects } from './objects.ts';
import type { Batch, Scores } from './records.ts';
import { DamagedTensors, floatBits, integers, octets, offsets } from './tensors.ts';
import type { Tensors } from './tensors.ts';
import { columnsIn, columnsOf, differenceOfColumns } from './token-columns.ts';
import type { Columns } from './token-columns.ts';

/** reward = weight · score of the reward model + scorerWeight · score of the scorer. */
export interface RewardMix {
  readonly weight: number;
  readonly scorerWeight: number;
}

/** One sequence as its source stores it. */
export interface Source {
  readonly row: number;
  readonly prompt: Int32Array;
  readonly response: Int32Array;
  /** The log-probs as bits. Rows have no log-probs. */
  readonly logProbs?: Int32Array;
  /** What its sampler said of each token of the response. Rows have none. */
  readonly columns?: Columns;
  /** null: the response could not be scored, for this reason. */
  readonly score?: number | null;
  readonly reason?: string | null;
}

/** Sources by draw and sample. */
export type Sources = ReadonlyMap<string, Source>;
export const sourceName = (draw: number, sample: number): string => `${draw} ${sample}`;

/** Samples of one trajectories object, by draw and sample. */
export function sourcesOf(trajectories: Tensors, table: Scores): Map<string, Source> {
  const draws = integers(trajectories, 'draw');
  const rows = integers(trajectories, 'row');
  const { groups, prompt } = groupsOf(trajectories, draws.length);
  const [promptTokens, responseTokens] = [
    integers(trajectories, 'prompt_tokens'),
    integers(trajectories, 'response_tokens'),
  ];
  if (table.drawOffsets?.some((offset, g) => offset !== groups[g]))
    throw new DamagedTensors('the table of its scores has other draws');
  const prompts = offsets(trajectories, 'prompt_offsets', promptTokens.length);
  const responses = offsets(trajectories, 'response_offsets', responseTokens.length);
  const logProbs = floatBits(trajectories, 'log_probs');
  const columns = columnsIn(trajectories, responseTokens.length);
  const sizes = [
    rows.length,
    responses.length - 1,
    octets(trajectories, 'stop_reason').length,
    prompt.length,
    table.scores.length,
    table.reasons.length,
  ];
  if (sizes.some((size) => size !== draws.length) || logProbs.length !== responseTokens.length)
    throw new DamagedTensors(`its lengths disagree: ${[draws.length, ...sizes].join(', ')}`);
  const found = new Map<string, Source>();
  let g = 0;
  draws.forEach((draw, b) => {
    while (b >= at(groups, g + 1)) g++;
    const first = at(groups, g);
    const name = sourceName(draw, b - first);
    if (found.has(name) || draw !== draws[first])
      throw new DamagedTensors(`sample ${b} is a second one of draw ${draw}`);
    const [start, end] = [responses[b], responses[b + 1]];
    const p = at(prompt, b);
    if (p < 0 || p + 1 >= prompts.length)
      throw new DamagedTensors(`sample ${b} has prompt ${p} of ${prompts.length - 1}`);
    found.set(name, {
      row: at(rows, b),
      prompt: promptTokens.subarray(prompts[p], prompts[p + 1]),
      response: responseTokens.subarray(start, end),
      logProbs: logProbs.subarray(start, end),
      columns: columnsOf(columns, at(responses, b), at(responses, b + 1)),
      score: at(table.scores, b),
      reason: at(table.reasons, b),
    });
  });
  return found;
}

/** Where the samples of each draw begin, and the prompt of each sample. Before format 3 each draw had as many. */
function groupsOf(
  trajectories: Tensors,
  samples: number,
): { readonly groups: Int32Array; readonly prompt: Int32Array } {
  if (trajectories.metadata['format'] === '3')
    return { groups: offsets(trajectories, 'draw_offsets', samples), prompt: integers(trajectories, 'prompt') };
  const perDraw = Number(trajectories.metadata['samples_per_draw']);
  if (!(Number.isSafeInteger(perDraw) && perDraw >= 1 && samples % perDraw === 0))
    throw new DamagedTensors(`${samples} samples, ${perDraw} for each draw`);
  return {
    groups: Int32Array.from({ length: samples / perDraw + 1 }, (_, g) => g * perDraw),
    prompt: Int32Array.from({ length: samples }, (_, b) => Math.floor(b / perDraw)),
  };
}

/** How the batches of a run may differ from what was sampled. */
export interface BatchRules {
  /** Tokens of responses may be masked. */
  readonly rejects: boolean;
  /** Rewards come from a reward model, too. */
  readonly mix: RewardMix | undefined;
}

/** A sample at its place in the batch, as its source has it. */
export interface Placed {
  readonly place: number;
  readonly source: Source;
  /** What a fault calls it. */
  readonly name: string;
}

/** Checks the draws that the record lists against their sources. Returns the samples that the batch must have. */
export function placedSamples({ faults }: Objects, batch: Batch, key: string, sources: Sources): Placed[] {
  const placed: Placed[] = [];
  for (const { draw, row, fate, samples } of batch.draws) {
    samples.forEach((place, s) => {
      const source = sources.get(sourceName(draw, s));
      if (source === undefined)
        return faults.add(key, `a source of sample ${s} of draw ${draw}`, 'none in the results it names');
      faults.equal(key, `row of draw ${draw} as sampled:`, source.row, row);
      if (typeof place === 'string') {
        if (source.score !== null && fate === 'trained')
          faults.add(key, `sample ${s} of draw ${draw} in the batch: it has score ${source.score}`, place);
        if (source.score === null)
          faults.equal(key, `reason of sample ${s} of draw ${draw}:`, source.reason ?? place, place);
        return;
      }
      placed.push({ place, source, name: `sample ${s} of draw ${draw} at place ${place}` });
    });
  }
  const named = batch.draws.reduce((sum, { samples }) => sum + samples.length, 0);
  faults.equal(key, 'samples in the results that it names:', named, sources.size);
  return placed;
}

/**
 * Compares samples with the tensors that have them. `localOf`: where a place of the batch is in these tensors; samples
 * that a shard does not have are left out.
 */
export function compareSequences(
  { faults }: Objects,
  tensorsKey: string,
  tensors: Tensors,
  placed: readonly Placed[],
  { rejects, mix }: BatchRules,
  localOf: (place: number) => number | undefined = (place) => place,
): void {
  const layout = layoutOf(tensors, mix);
  for (const { place, source, name } of placed) {
    const local = localOf(place);
    const wrong = local === undefined ? undefined : differenceOf(layout, local, source, rejects);
    if (wrong !== undefined) faults.add(tensorsKey, `${name}, as it was sampled`, wrong);
  }
}

interface Layout {
  readonly tokens: Int32Array;
  readonly offsets: Int32Array;
  readonly scored: Int32Array;
  readonly scoredOffsets: Int32Array;
  readonly mask: Uint8Array;
  readonly logProbs: Int32Array | undefined;
  readonly columns: Columns;
  readonly rewards: Int32Array;
  readonly mix?: RewardMix;
  /** Scores of a reward model, by place. */
  readonly modelScores?: Float32Array;
}

function layoutOf(tensors: Tensors, mix: RewardMix | undefined): Layout {
  const tokens = integers(tensors, 'tokens');
  const scored = integers(tensors, 'scored');
  return {
    tokens,
    offsets: offsets(tensors, 'offsets', tokens.length),
    scored,
    scoredOffsets: offsets(tensors, 'scored_offsets', scored.length),
    mask: octets(tensors, 'mask'),
    logProbs: tensors.entries.has('rollout_log_probs') ? floatBits(tensors, 'rollout_log_probs') : undefined,
    columns: columnsIn(tensors, scored.length),
    rewards: floatBits(tensors, 'rewards'),
    ...(mix && { mix, modelScores: new Float32Array(floatBits(tensors, 'model_scores').buffer) }),
  };
}

/** A short text about what differs. */
function differenceOf(layout: Layout, place: number, source: Source, rejects: boolean): string | undefined {
  if (place < 0 || place + 1 >= layout.offsets.length) return `a batch of ${layout.offsets.length - 1} samples`;
  const [start, end] = [at(layout.offsets, place), at(layout.offsets, place + 1)];
  const [scoredStart, scoredEnd] = [at(layout.scoredOffsets, place), at(layout.scoredOffsets, place + 1)];
  const responseAt = start + source.prompt.length;
  if (!same(layout.tokens.subarray(start, responseAt), source.prompt)) return 'another prompt';
  if (!same(layout.tokens.subarray(responseAt, end), source.response)) return 'another response';
  const scored = layout.scored.subarray(scoredStart, scoredEnd);
  if (scored.length !== source.response.length || scored.some((place, t) => place !== responseAt + t))
    return 'other tokens are scored';
  if (layout.mask.subarray(scoredStart, scoredEnd).some((one) => one !== 1 && !(rejects && one === 0)))
    return 'response tokens are masked';
  const column = differenceOfColumns(columnsOf(layout.columns, scoredStart, scoredEnd), source.columns ?? noColumns);
  if (column !== undefined) return column;
  if (source.logProbs === undefined) return undefined;
  if (layout.logProbs !== undefined && !same(layout.logProbs.subarray(scoredStart, scoredEnd), source.logProbs))
    return 'other log-probs';
  if (source.score === null || source.score === undefined) return 'a sample that has no score';
  const reward = rewardOf(layout, place, source.score);
  return layout.rewards[place] === bitsOf(reward) ? undefined : `another reward than ${reward}`;
}

const noColumns: Columns = new Map();

function rewardOf({ mix, modelScores }: Layout, place: number, score: number): number {
  return mix === undefined || modelScores === undefined
    ? score
    : mix.weight * at(modelScores, place) + mix.scorerWeight * score;
}

const same = (a: Int32Array, b: Int32Array): boolean => a.length === b.length && a.every((value, i) => value === b[i]);

const bitsOf = (value: number): number => at(new Int32Array(Float32Array.of(value).buffer), 0);
