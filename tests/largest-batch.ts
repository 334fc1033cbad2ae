/** An update of many tokens without an engine: its trajectories, its batch, and the update, all in this process. */
import { at } from '../core/at.ts';
import type { Digest, JobId, RunId } from '../core/ids.ts';
import type { ForwardOptions, OutputName, PackedBatch, PolicyEngine } from '../core/ports/policy.ts';
import type { Store } from '../core/ports/store.ts';
import type { BatchRecord, LossSettings } from '../core/records/schema.ts';
import { advantageEstimator } from '../core/rl/advantages/index.ts';
import type { AdvantageInput, AdvantageOutput, UpdateOutput } from '../core/wire/jobs/index.ts';
import { putBlob, putJsonBlob } from '../log/objects/blobs.ts';
import { encodeTrajectories, singleTurn } from '../models/trajectories.ts';
import { offsetsOf } from '../core/offsets.ts';
import { advantage } from '../workers/engine/batch/advantage.ts';
import type { EngineHost } from '../workers/engine/host/host.ts';
import type { JobContext } from '../workers/engine/job/context.ts';
import type { RunState } from '../workers/engine/state/state.ts';
import { openBatch } from '../workers/engine/samples/stored-batch.ts';
import { applyBatch } from '../workers/engine/update/update.ts';

export interface BatchSize {
  readonly prompts: number;
  readonly samplesPerPrompt: number;
  readonly promptTokens: number;
  readonly responseTokens: number;
  /** Prompts of one rollout job, and of one optimiser step. */
  readonly promptsPerPart: number;
  readonly promptsPerStep: number;
}

const runId: RunId = 'largest-batch';
const digest: Digest = '0'.repeat(64);

/**
 * The trajectories and scores of a batch as its rollout and reward jobs store them. All responses have equal tokens.
 */
export async function storeParts(store: Store, size: BatchSize): Promise<AdvantageInput['parts']> {
  const { prompts, samplesPerPrompt: n, promptTokens, responseTokens, promptsPerPart } = size;
  const samples = promptsPerPart * n;
  const offsets = offsetsOf(Array.from({ length: samples }, () => responseTokens));
  const tokens = Int32Array.from({ length: samples * responseTokens }, (_, t) => t % 1000);
  const logProbs_T = Float32Array.from(tokens, (token) => -0.01 * (1 + (token % 90)));
  const same = {
    weightsDigest: digest,
    drawOffsets_G1: Int32Array.from({ length: promptsPerPart + 1 }, (_, g) => g * n),
    promptTokens: Int32Array.from({ length: promptsPerPart * promptTokens }, (_, t) => t % 1000),
    promptOffsets_P1: Int32Array.from({ length: promptsPerPart + 1 }, (_, p) => p * promptTokens),
    prompt_S: Int32Array.from({ length: samples }, (_, b) => Math.floor(b / n)),
    responseTokens_T: tokens,
    responseOffsets_S1: offsets,
    logProbs_T,
    samplingLogProbs_T: logProbs_T,
    ...singleTurn(
      offsets,
      Int32Array.from({ length: samples }, (_, b) => b % n),
      0,
    ),
    stopReason_S: new Uint8Array(samples).fill(1),
  };
  const parts: { trajectories: Digest; scores: Digest }[] = [];
  for (let first = 0; first < prompts; first += promptsPerPart) {
    const draw_S = same.prompt_S.map((p) => first + p);
    const trajectories = await putBlob(store, runId, encodeTrajectories({ ...same, draw_S, row_S: draw_S }));
    const scores = Array.from(draw_S, (draw, b) => ((draw + b * 7) % 11) / 10);
    const table = { trajectories, scores, reasons: scores.map(() => null), columns: {} };
    parts.push({ trajectories, scores: await putJsonBlob(store, runId, table) });
  }
  return parts;
}

/** Says something of every token, and counts what it is asked for. */
export class CountingEngine
  implements Pick<PolicyEngine, 'lanes' | 'outputs' | 'forward' | 'backward' | 'discard' | 'step'>
{
  readonly lanes = 1;
  readonly outputs = ['logProbs'] as const;
  scoredTokens = 0;
  trainedTokens = 0;
  steps = 0;

  async forward<Wanted extends OutputName>(passes: readonly PackedBatch[], { wants }: ForwardOptions<Wanted>) {
    return passes.map(({ positions_P }) => {
      this.scoredTokens += positions_P.length;
      const values = new Float32Array(positions_P.length).fill(-0.5);
      return { handle: 1, outputs: Object.fromEntries(wants.map((name) => [name, values])) as never };
    });
  }

  async backward(passes: readonly { readonly gradients: { readonly logProbs?: Float32Array } }[]): Promise<void> {
    for (const { gradients } of passes) this.trainedTokens += gradients.logProbs?.length ?? 0;
  }

  async discard(): Promise<void> {}

  async step() {
    this.steps++;
    return { gradNorm: 1, taken: true };
  }
}

const loss: LossSettings = {
  kind: 'policy',
  ...{ lossMode: 'vanilla', clipRatioLow: 0.2, clipRatioHigh: 0.2, clipRatioC: 3, lossAggMode: 'token-mean' },
  ...{ entropyCoeff: 0, useKlLoss: true, klLossCoef: 0.001, klLossType: 'low_var_kl' },
  ...{ temperature: 1, lossScaleFactor: 1 },
};

function inputOf(size: BatchSize, parts: AdvantageInput['parts']): AdvantageInput {
  const counters = { cursor: 0, optimizerSteps: {}, badSteps: 0, controllers: {} };
  const algorithm = {
    ...{ seed: [1, 2], samplesPerDraw: size.samplesPerPrompt, advEstimator: 'grpo', normAdvByStd: true },
    ...{ maxFailedFraction: 0, miniBatchPrompts: size.promptsPerStep, epochs: 1, shuffle: true },
    ...{ maxTokensPerMicroBatch: 65_536, maxResponseLength: size.responseTokens, loss, optimizer: {} },
    schedule: { lr: 1e-6, type: 'constant' },
  };
  return {
    ...{ kind: 'rl', iteration: 1, parentState: digest, weights: digest, profile: {}, draws: [], parts },
    ...{ inputs: { model: digest, train: digest, trainRows: size.prompts }, algorithm },
    ...{ before: counters, cursorAfter: size.prompts },
  } as unknown as AdvantageInput;
}

const context = {
  ...{ runId, jobId: 'advantage-1' as JobId, at: { term: 1, iteration: 0 }, store: '' },
  ...{ progress: () => {}, count: () => {}, say: () => {}, throwIfCancelled: () => {} },
  signal: new AbortController().signal,
} as unknown as JobContext;

/** The batch of these parts, made by the advantage stage. */
export function madeBatch(
  store: Store,
  size: BatchSize,
  parts: AdvantageInput['parts'],
  engine: CountingEngine,
): Promise<AdvantageOutput> {
  const host = {
    ...{ options: {}, store: async () => store, frozen: async () => engine },
    stateAt: async () => ({ engine, engines: { actor: engine } }),
    own: { estimator: () => advantageEstimator('grpo') },
  } as unknown as EngineHost;
  return advantage(host, inputOf(size, parts), context);
}

/** Reads the batch as an update does, and computes the loss of every micro-batch. */
export async function updated(store: Store, made: AdvantageOutput, engine: CountingEngine): Promise<UpdateOutput> {
  const components = Object.entries(made.components).map(([name, one]) => [name, { ...one, profile: 'any' }]);
  const record = {
    ...made,
    iteration: 1,
    before: made.after,
    components: Object.fromEntries(components) as BatchRecord['components'],
  } as unknown as BatchRecord;
  const digests = { stateDigest: digest, components: { actor: { stateDigest: digest } } };
  const state = {
    ...{ tag: digests, engines: { actor: engine }, markDirty: () => {}, seal: async () => digests },
  } as unknown as RunState;
  const contents = await openBatch(store, runId, record, 'the record of this batch');
  const steps = at(Object.values(made.components), 0).learningRates.length;
  if (contents.index.stepOffsets_U1.length !== steps + 1) throw new Error(`the batch has not ${steps} steps`);
  return applyBatch(state, { record, digest }, contents, { tick: () => {} });
}
