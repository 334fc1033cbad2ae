/** The rollout stage: samples responses, packs them as trajectories and stores them. */
import { at } from '../../core/at.ts';
import type { RolloutInput, RolloutOutput } from '../../core/wire/jobs.ts';
import { putBlob } from '../../infra/store/blobs.ts';
import { encodeTrajectories, offsetsOf, singleTurn } from '../../models/trajectories.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import { readDecoderSpec } from '../../models/config.ts';
import { readConfigJson } from '../../models/weights.ts';
import { tokenizerOf } from '../tokenizers.ts';
import type { Completion } from './generation.ts';
import type { EngineHost, JobContext } from './host.ts';
import { journalled } from './journalled.ts';
import { rowSequences } from './row-sequences.ts';

export async function rollout(host: EngineHost, input: RolloutInput, context: JobContext): Promise<RolloutOutput> {
  const dataset = await host.dataset(context, input.dataset);
  const folder = await host.modelFolder(context, input.model, 'text');
  const tokenizer = await tokenizerOf(folder);
  const rows = input.draws.map(({ row }) => row);
  const prompts = (await rowSequences(dataset, rows, tokenizer, folder)).map(({ prompt }) => prompt);
  // The longest prompt of all rows, because a larger generation later would drop the samples in flight.
  const room = { maxSeqs: input.maxSequences, maxModelLen: dataset.longestPrompt + input.maxNewTokens };
  const job = {
    runId: context.runId,
    prompts,
    draws: input.draws.map(({ draw }) => draw),
    samplesPerDraw: input.samplesPerDraw,
    firstSample: input.firstSample ?? 0,
    sampling: input.sampling,
    maxNewTokens: input.maxNewTokens,
    stopTokens: Int32Array.from(tokenizer.stopTokens),
    seed: input.seed,
    onEnded: (places: readonly number[], completions: readonly Completion[]) =>
      context.ended(
        places.map((b) => ({
          ...at(input.draws, Math.floor(b / input.samplesPerDraw)),
          sample: (input.firstSample ?? 0) + (b % input.samplesPerDraw),
          tokens: Int32Array.from(at(completions, b).tokens),
        })),
      ),
    ...(input.stopStrings.length > 0 && {
      stopsAt: (tokens: readonly number[]) =>
        endsWithAny(tokenizer.decode([...tokens.slice(-tailTokens)]), input.stopStrings),
    }),
  };
  const { vocab } = readDecoderSpec(await readConfigJson(folder));
  const total = input.draws.length * input.samplesPerDraw * input.maxNewTokens;
  const completions = await journalled(
    { input, job, vocab, arithmetic: host.arithmetic(input.profile), total },
    context,
    (whole) => host.generate(context, input.model, input.profile, input.weights, room, whole),
  );
  const trajectories = pack(input, prompts, completions, context.at.iteration);
  const store = await host.store(context.store);
  return {
    trajectories: await putBlob(store, context.runId, encodeTrajectories(trajectories)),
    samples: completions.length,
    promptTokens: trajectories.promptTokens.length,
    responseTokens: trajectories.responseTokens_T.length,
  };
}

/** Stop strings are searched in the text of the last tokens. */
const tailTokens = 32;

function endsWithAny(text: string, stops: readonly string[]): boolean {
  return stops.some((stop) => text.includes(stop));
}

/** `version`: of the policy whose weights the job names. */
function pack(
  input: RolloutInput,
  prompts: readonly Int32Array[],
  completions: readonly Completion[],
  version: number,
): Trajectories {
  const n = input.samplesPerDraw;
  const responseOffsets_S1 = offsetsOf(completions.map((completion) => completion.tokens.length));
  const session_S = Int32Array.from(completions, (_, b) => (input.firstSample ?? 0) + (b % n));
  const owner = (b: number) => at(input.draws, Math.floor(b / n));
  return {
    weightsDigest: input.weights,
    samplesPerDraw: n,
    draw_S: Int32Array.from(completions, (_, b) => owner(b).draw),
    row_S: Int32Array.from(completions, (_, b) => owner(b).row),
    promptTokens: Int32Array.from(prompts.flatMap((prompt) => [...prompt])),
    promptOffsets_G1: offsetsOf(prompts.map((prompt) => prompt.length)),
    responseTokens_T: Int32Array.from(completions.flatMap((completion) => completion.tokens)),
    responseOffsets_S1,
    logProbs_T: Float32Array.from(completions.flatMap((completion) => completion.logProbs)),
    samplingLogProbs_T: Float32Array.from(completions.flatMap((completion) => completion.samplingLogProbs)),
    ...singleTurn(responseOffsets_S1, session_S, version),
    stopReason_S: Uint8Array.from(completions, (completion) => completion.stopReason),
  };
}
