/**
 * What the native engine says of models and of memory before it runs. With P parameters, layers l, N tokens of one
 * pass and V words, a process takes:
 *
 *   weights, copies, gradients, moments: memory.ts; the last two of a model that learns
 *   snapshot     12 P          the state while its checkpoint is written; once for each model that learns
 *   critic       as the policy's weights, copies, gradients and moments, for each further model that learns
 *   reference    weights and copies, for each frozen model
 *   teacher      weights and copies of its own shape
 *   activations  4 N (l (2 hidden + 2 query + 2 kv + heads + g ffn) + 4 ffn + 4 hidden + query)
 *                + 4 V min(N, rows of logits), where g is 2 in fp32 and 1 in bf16, in which gate and up are kept
 *   KV cache     pages of 16 positions for every sample that decodes at once, at most a quarter of the machine's memory
 *
 * tests/integration/plan-memory.test.ts holds it against a measured run.
 */
import type { DevicePlan, EnginePlans, ModelFacts, ProcessWanted } from '../../core/ports/engine-plans.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import type { HeadKind } from '../../core/ports/policy.ts';
import type { ComputeType } from '../../core/parameters.ts';
import { headOfConfig } from '../../models/config.ts';
import { readConfigJson } from '../../models/folder.ts';
import { openSafetensors } from '../../models/safetensors.ts';
import { readDecoderSpec, readScoreSpec, readValueSpec } from './config.ts';
import { cacheBytes, cacheShare, modelMemory, pageBytes, pagesOfSequence, parameterCount } from './memory.ts';
import { isTied } from './spec.ts';
import type { DecoderSpec, LayerSpec } from './spec.ts';
import { checkUnused } from './unused-tensors.ts';
import { checkTensors, withoutHead } from './weights.ts';

const readers: Readonly<Record<HeadKind, (config: unknown, where: string) => DecoderSpec>> = {
  tokens: readDecoderSpec,
  scores: readScoreSpec,
  values: readValueSpec,
};

/** The decoder in a model's folder. Throws InvalidInputError for one that the engine cannot run. */
export async function specOf({ folder, head }: ModelRef): Promise<DecoderSpec> {
  return readers[head](await readConfigJson(folder), `${folder}/config.json`);
}

export const nativePlans: EnginePlans = {
  async readModel(model): Promise<ModelFacts> {
    const spec = await specOf(model);
    const { family, layers, vocab, maxPositions } = spec;
    return { family, layers: layers.length, parameters: parameterCount(spec), vocab, maxPositions };
  },

  async checkWeights(model): Promise<void> {
    const spec = await specOf(model);
    const source = await openSafetensors(model.folder);
    try {
      const newHead = headOfConfig(await readConfigJson(model.folder)) !== spec.head.kind;
      checkTensors(source, newHead ? withoutHead(spec, spec.tensors) : spec.tensors, newHead || isTied(spec));
      await checkUnused(source, spec, { newHead });
    } finally {
      await source.close();
    }
  },

  async plan(wanted): Promise<readonly DevicePlan[]> {
    const teacher = wanted.teacher && (await specOf(wanted.teacher));
    return [{ device: 'memory', parts: partsOf(wanted, await specOf(wanted.model), teacher) }];
  },
};

function partsOf(wanted: ProcessWanted, spec: DecoderSpec, teacher: DecoderSpec | undefined): DevicePlan['parts'] {
  const { compute, trained, frozen } = wanted;
  const model = modelMemory(spec, { compute, trainable: trained > 0 });
  return {
    ...model,
    snapshot: 12 * parameterCount(spec) * trained,
    critic: Math.max(0, trained - 1) * sum(Object.values(model)),
    reference: frozen * (model.weights + model.copies),
    ...(teacher && { teacher: sum(Object.values(modelMemory(teacher, { compute, trainable: false }))) }),
    activations: trained > 0 ? activations(wanted.tokens, spec, compute) : 0,
    kvCache: kvCache(wanted, spec),
  };
}

function activations(tokens: number, spec: DecoderSpec, compute: ComputeType): number {
  const { hidden, vocab, layers } = spec;
  const kept = sum(layers.map((layer) => keptPerToken(hidden, layer, compute)));
  const working = Math.max(...layers.map(({ mixer, ffn }) => 4 * ffn.width + 4 * hidden + mixer.heads * mixer.headDim));
  return 4 * (tokens * (kept + working) + vocab * Math.min(tokens, logitRows(vocab)));
}

/** What a layer keeps per token for the backward pass, in units of 4 bytes: native/src/executor.h. */
function keptPerToken(hidden: number, { norms, mixer, ffn }: LayerSpec, compute: ComputeType): number {
  const { heads, kvHeads, headDim } = mixer;
  const normsAfter = [norms.afterMixer, norms.afterFfn].filter((norm) => norm !== undefined).length;
  const gateUp = (compute === 'bf16' ? 1 : 2) * ffn.width;
  return (2 + normsAfter) * hidden + 2 * heads * headDim + 2 * kvHeads * headDim + heads + gateUp;
}

/** Positions whose logits are in memory at once: native/src/ops/head.cpp. */
function logitRows(vocab: number): number {
  return Math.min(512, Math.max(64, Math.floor(2 ** 24 / vocab / 64) * 64));
}

function kvCache({ sampling, compute, machineBytes }: ProcessWanted, spec: DecoderSpec): number {
  if (sampling === undefined) return 0;
  const one = pagesOfSequence(sampling) * pageBytes(spec, compute);
  return Math.max(one, Math.min(cacheBytes(spec, compute, sampling), machineBytes * cacheShare));
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
