/** The rollout stage: samples responses, packs them as trajectories and stores them. */
import { at } from '../../../core/at.ts';
import { offsetsOf } from '../../../core/offsets.ts';
import { joinedTokenColumns } from '../../../core/token-columns.ts';
import type { RolloutInput, RolloutOutput } from '../../../core/wire/jobs/index.ts';
import { putBlob } from '../../../log/objects/blobs.ts';
import { vocabOf } from '../../../models/config.ts';
import { encodeTrajectories, singleTurn } from '../../../models/trajectories.ts';
import type { Trajectories } from '../../../models/trajectories.ts';
import { configOf } from '../../../models/loaded-configs.ts';
import { tokenizerOf } from '../../../models/loaded-tokenizers.ts';
import type { Completion, GenerationSettings } from '../generation/generation.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { journalled } from './journalled.ts';
import { rowSequences } from '../samples/row-sequences.ts';

/** One response that the job wants. */
interface WantedResponse {
  readonly draw: number;
  readonly row: number;
  /** Number among the responses to its draw. */
  readonly sample: number;
  /** Number of its prompt among those of the job. */
  readonly p: number;
  readonly prompt: Int32Array;
}

export async function rollout(host: EngineHost, input: RolloutInput, context: JobContext): Promise<RolloutOutput> {
  const dataset = await host.dataset(context, input.dataset);
  const folder = await host.modelFolder(context, input.model, 'text');
  const tokenizer = await tokenizerOf(folder);
  const rows = input.draws.map(({ row }) => row);
  const prompts = (await rowSequences(dataset, rows, tokenizer, folder)).map(({ prompt }) => prompt);
  // The longest prompt of all rows, because a larger generation later would drop the samples in flight.
  const room = { maxSeqs: input.maxSequences, maxModelLen: dataset.longestPrompt + input.maxNewTokens };
  const settings: GenerationSettings = {
    runId: context.runId,
    sampling: input.sampling,
    maxNewTokens: input.maxNewTokens,
    stopTokens: Int32Array.from(tokenizer.stopTokens),
    seed: input.seed,
    ...(input.stopStrings.length > 0 && {
      stopsAt: (tokens: readonly number[]) =>
        endsWithAny(tokenizer.decode([...tokens.slice(-tailTokens)]), input.stopStrings),
    }),
  };
  const work = {
    samples: wantedBy(input, prompts),
    settings,
    weights: input.weights,
    vocab: vocabOf(await configOf(folder)),
    arithmetic: host.arithmetic(input),
    onEnded: (ended: readonly (readonly [WantedResponse, Completion])[]) =>
      context.ended(
        ended.map(([{ draw, row, sample }, { tokens }]) => ({ draw, row, sample, tokens: Int32Array.from(tokens) })),
      ),
  };
  let by: string | undefined;
  const completions = await host.sampling(context, input, room, (generation, sampledBy) => {
    by = sampledBy;
    return journalled(work, context, generation);
  });
  const trajectories = pack(input, work.samples, prompts, completions, context.at.iteration);
  const store = await host.store(context.store);
  return {
    trajectories: await putBlob(store, context.runId, encodeTrajectories(trajectories)),
    samples: completions.length,
    promptTokens: trajectories.promptTokens.length,
    responseTokens: trajectories.responseTokens_T.length,
    ...(by !== undefined && { sampledBy: by }),
  };
}

/** The responses of the job, draw by draw. */
function wantedBy(
  { draws, samplesPerDraw, firstSample = 0 }: RolloutInput,
  prompts: readonly Int32Array[],
): WantedResponse[] {
  return draws.flatMap(({ draw, row }, p) =>
    Array.from({ length: samplesPerDraw }, (_, i) => ({
      draw,
      row,
      sample: firstSample + i,
      p,
      prompt: at(prompts, p),
    })),
  );
}

/** Stop strings are searched in the text of the last tokens. */
const tailTokens = 32;

function endsWithAny(text: string, stops: readonly string[]): boolean {
  return stops.some((stop) => text.includes(stop));
}

/** What the sampler gave for each token of a sample; nothing is known of tokens from which it continued. */
function columnsOf({ tokens, columns }: Completion): Parameters<typeof joinedTokenColumns>[0] {
  if (columns === undefined) return [{ columns: {}, tokens: tokens.length }];
  return [{ columns: {}, tokens: columns.from }, ...columns.parts.map((one) => ({ columns: one, tokens: 1 }))];
}

/** `version`: of the policy whose weights the job names. */
function pack(
  input: RolloutInput,
  wanted: readonly WantedResponse[],
  prompts: readonly Int32Array[],
  completions: readonly Completion[],
  version: number,
): Trajectories {
  const responseOffsets_S1 = offsetsOf(completions.map((completion) => completion.tokens.length));
  const session_S = Int32Array.from(wanted, ({ sample }) => sample);
  return {
    weightsDigest: input.weights,
    drawOffsets_G1: offsetsOf(input.draws.map(() => input.samplesPerDraw)),
    draw_S: Int32Array.from(wanted, ({ draw }) => draw),
    row_S: Int32Array.from(wanted, ({ row }) => row),
    promptTokens: Int32Array.from(prompts.flatMap((prompt) => [...prompt])),
    promptOffsets_P1: offsetsOf(prompts.map((prompt) => prompt.length)),
    prompt_S: Int32Array.from(wanted, ({ p }) => p),
    responseTokens_T: Int32Array.from(completions.flatMap((completion) => completion.tokens)),
    responseOffsets_S1,
    logProbs_T: Float32Array.from(completions.flatMap((completion) => completion.logProbs)),
    samplingLogProbs_T: Float32Array.from(completions.flatMap((completion) => completion.samplingLogProbs)),
    ...singleTurn(responseOffsets_S1, session_S, version),
    tokenColumns: joinedTokenColumns(completions.flatMap(columnsOf)),
    stopReason_S: Uint8Array.from(completions, (completion) => completion.stopReason),
  };
}
