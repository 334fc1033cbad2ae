import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ModelRef, SamplingEngine, TrainingEngine } from '../../../core/ports/engines.ts';
import type { EngineOptions, HeadKind, PolicyEngine, ScoringModel, StateSource } from '../../../core/ports/policy.ts';
import type { Sampler } from '../../../core/ports/sampler.ts';
import { publishedBytes } from '../../../core/records/publications.ts';
import { decodeSafetensors } from '../../../models/safetensors.ts';
import { architectureNames } from '../../../native/model/config.ts';
import { MemoryPlan } from '../../../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../../../workers/engine/engines/native/index.ts';
import type { Evaluator, GoldenCase, Outcome } from '../types.ts';
import { greedy } from './models-greedy.ts';
import { KeptModel } from './models-kept.ts';
import { logitRows, objectiveOf, scoresOf, tokensOf, valuesOf } from './models-objectives.ts';
import { packed, type Ragged } from './sequences.ts';

/** A model with the weights of a case's folder. */
interface Opened {
  readonly folder: string;
  readonly model: PolicyEngine;
  /** A new one with the model's weights. */
  readonly sampler: () => Promise<Sampler>;
}

type Result = Promise<{ got: Outcome; expected?: Outcome }>;
type Kind = (opened: Opened, testCase: GoldenCase) => Result;

const KINDS: Readonly<Record<string, Kind>> = {
  logprobs,
  left_padded: leftPadded,
  greedy: async ({ model, sampler: makeSampler }, testCase) => {
    const sampler = await makeSampler();
    return greedy(model, sampler, testCase).finally(() => sampler.close());
  },
  gradient,
  train_step: trainStep,
  scores: async ({ model }, { inputs }) => ({ got: { scores: await scoresOf(model, inputs['sequences'] as Ragged) } }),
  scores_padded: async ({ model }, { inputs }) => ({ got: { scores: await scoresOf(model, withoutPadding(inputs)) } }),
  values: async ({ model }, { inputs }) => ({ got: { values: await valuesOf(model, inputs['sequences'] as Ragged) } }),
  values_left_padded: async ({ model }, { inputs }) => ({
    got: { values: await valuesOf(model, withoutPadding(inputs)) },
  }),
};

const allHeads: readonly HeadKind[] = ['tokens', 'values', 'scores'];

/** Has an engine models of this architecture? */
type Knows = (architecture: string) => boolean;

/**
 * Compares models of an engine with Hugging Face's float64 results, through the port of engines. `sampling`: loads what
 * the models publish.
 */
export function modelsEvaluator(
  engines: TrainingEngine,
  sampling: SamplingEngine,
  options: EngineOptions,
  knows: Knows,
): Evaluator & { close(): Promise<void> } {
  const kept = new KeptModel(engines, options);
  return {
    family: 'models',
    handles: ({ architecture }) => knows(String(architecture)),
    async evaluate(testCase, { architecture }, folder) {
      const kind = KINDS[testCase.kind ?? ''];
      if (kind === undefined) throw new Error(`no evaluator for model cases of kind ${testCase.kind}`);
      const ref = { folder, head: headOf(String(architecture)) };
      const model = await kept.of(ref);
      return kind({ folder, model, sampler: () => samplerOf(sampling, options, model, ref) }, testCase);
    },
    close: () => kept.close(),
  };
}

export const nativeModels = (options: EngineOptions) => {
  const known = architectureNames(allHeads);
  const engines = nativeEngines(new MemoryPlan(2 ** 40));
  return modelsEvaluator(engines, engines, options, (name) => known.includes(name));
};

export const models = nativeModels({ compute: 'fp32', deterministic: true, threads: 2 });

/** The head of a model whose class transformers calls so. */
function headOf(architecture: string): HeadKind {
  if (architecture.endsWith('ForTokenClassification')) return 'values';
  return architecture.endsWith('ForSequenceClassification') ? 'scores' : 'tokens';
}

/** A sampler with the model's weights. */
async function samplerOf(
  { sampler: open }: SamplingEngine,
  options: EngineOptions,
  model: PolicyEngine,
  ref: ModelRef,
): Promise<Sampler> {
  const sampler = await open(ref, options);
  const bytes = new Uint8Array(publishedBytes(model.parameters, 'F32'));
  await model.readPublished('F32', 0, bytes);
  const source: StateSource = {
    type: 'published',
    format: 'F32',
    read: async (sinkOf) => sinkOf(0, bytes.length)(bytes),
  };
  await sampler.use(source, { format: 'F32', hash: 'blake3' });
  return sampler;
}

export async function logprobs({ model }: { readonly model: ScoringModel }, { inputs, expected }: GoldenCase): Result {
  const sequences = inputs['sequences'] as Ragged;
  const { logprobs, entropy } = await tokensOf(model, sequences, inputs['temperature'] as number, false);
  const got = { logprobs, entropy };
  return {
    got: expected?.['last_logits'] === undefined ? got : { ...got, last_logits: await lastLogits(model, sequences) },
  };
}

/** Logits at the last position of each sequence. */
async function lastLogits(model: ScoringModel, sequences: Ragged): Promise<number[][]> {
  const { targets_P: _, cuSeqlens, ...batch } = packed(sequences);
  const last = cuSeqlens.subarray(1).map((end) => end - 1);
  const rows = await logitRows(model, { ...batch, cuSeqlens, positions_P: last });
  return rows.map((row) => Array.from(row));
}

/** No engine has padding: the real tokens are packed. */
function withoutPadding(inputs: GoldenCase['inputs']): Ragged {
  const mask = inputs['attention_mask'] as Ragged;
  return (inputs['input_ids'] as Ragged).map((row, i) => row.filter((_, t) => mask[i]?.[t] === 1));
}

async function leftPadded({ model }: Opened, { inputs }: GoldenCase): Result {
  const { logprobs, entropy } = await tokensOf(model, withoutPadding(inputs), 1, false);
  return { got: { logprobs, entropy } };
}

/** With beta1 = 0 and a learning rate of 0, the first moments after a step are the gradients. */
const readGradients = { lr: 0, beta1: 0, beta2: 0, eps: 1, weightDecay: 0, maxGradNorm: 0 };

export async function gradient(
  { model, folder }: Pick<Opened, 'model' | 'folder'>,
  { inputs, expected }: GoldenCase,
): Result {
  const temperature = inputs['temperature'] as number;
  const loss = await objectiveOf(model).lossAndBackward(model, inputs['sequences'] as Ragged, temperature, inputs);
  const { gradNorm } = await model.step(readGradients);
  const gradients = await partOf(model, 'm');
  const perTensor = (f: (values: Float32Array) => unknown) => byName(model, gradients, f);
  const got = { loss, grad_norm: gradNorm };
  if (expected?.['gradients'] === undefined) return { got: { ...got, gradient_l2: perTensor(l2) } };
  const file = readTensors(join(folder, String(expected['gradients'])));
  return {
    got: { ...got, gradients: perTensor((values) => Array.from(values)) },
    expected: { ...expected, gradients: file },
  };
}

interface OptimizerInputs {
  readonly lr: number;
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weight_decay: number;
  readonly max_grad_norm?: number;
}

export async function trainStep({ model }: Pick<Opened, 'model'>, { inputs }: GoldenCase): Result {
  const sequences = inputs['sequences'] as Ragged;
  const objective = objectiveOf(model);
  const {
    lr,
    betas,
    eps,
    weight_decay: weightDecay,
    max_grad_norm: maxGradNorm = 0,
  } = inputs['optimizer'] as OptimizerInputs;
  const loss: number[] = [];
  const gradNorm: number[] = [];
  for (const step of inputs['steps'] as readonly Readonly<Record<string, unknown>>[]) {
    const temperature = (inputs['temperature'] as number | undefined) ?? 1;
    loss.push(await objective.lossAndBackward(model, sequences, temperature, step));
    const adamw = { lr, beta1: betas[0], beta2: betas[1], eps, weightDecay, maxGradNorm };
    gradNorm.push((await model.step(adamw)).gradNorm);
  }
  const parameters = byName(model, await partOf(model, 'weights'), summary);
  return { got: { loss, grad_norm: gradNorm, parameters, ...(await objective.after(model, sequences)) } };
}

async function partOf(model: PolicyEngine, part: string): Promise<Float32Array> {
  const values = new Float32Array(model.elements);
  await model.read(part, 0, values);
  return values;
}

function byName({ parameters }: PolicyEngine, flat: Float32Array, f: (values: Float32Array) => unknown): Outcome {
  return Object.fromEntries(
    parameters
      .filter(({ fixed }) => !fixed)
      .map(({ name, offset, size }) => [name, f(flat.subarray(offset, offset + size))]),
  );
}

/** What a case says of a tensor. */
export const summary = (values: Float32Array) => ({
  sum: values.reduce((sum, x) => sum + x, 0),
  l2: l2(values),
  first8: Array.from(values.subarray(0, 8)),
});

function l2(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
}

/** Name → values of a small safetensors file. */
function readTensors(path: string): Outcome {
  const { tensors } = decodeSafetensors(readFileSync(path), path);
  return Object.fromEntries(Array.from(tensors, ([name, { data }]) => [name, Array.from(data as Float32Array)]));
}
