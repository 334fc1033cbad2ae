import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { HeadKind } from '../../../core/ports/policy.ts';
import type { EngineOptions } from '../../../core/ports/policy.ts';
import { architectureNames, readDecoderSpec } from '../../../native/model/config.ts';
import { decodeSafetensors } from '../../../models/safetensors.ts';
import { loadWeights } from '../../../native/model/weights.ts';
import { createTrainer, type NativeTrainer } from '../../../native/index.ts';
import type { Evaluator, GoldenCase, Outcome } from '../types.ts';
import { greedy, logitRows } from './models-greedy.ts';
import { objectiveOf, scoresOf, tokensOf, valuesOf } from './models-objectives.ts';
import { packed, type Ragged } from './sequences.ts';

type Kind = (
  trainer: NativeTrainer,
  testCase: GoldenCase,
  folder: string,
) => Promise<{ got: Outcome; expected?: Outcome }>;

const KINDS: Readonly<Record<string, Kind>> = {
  logprobs,
  left_padded: leftPadded,
  greedy,
  gradient,
  train_step: trainStep,
  scores: async (trainer, { inputs }) => ({ got: { scores: scoresOf(trainer, inputs['sequences'] as Ragged) } }),
  scores_padded: async (trainer, { inputs }) => ({ got: { scores: scoresOf(trainer, withoutPadding(inputs)) } }),
  values: async (trainer, { inputs }) => ({ got: { values: valuesOf(trainer, inputs['sequences'] as Ragged) } }),
  values_left_padded: async (trainer, { inputs }) => ({ got: { values: valuesOf(trainer, withoutPadding(inputs)) } }),
};

const allHeads: readonly HeadKind[] = ['tokens', 'values', 'scores'];

/** Compares decoders of the native engine with Hugging Face's float64 results, under the given options. */
export function modelsEvaluator(options: EngineOptions): Evaluator {
  const known = architectureNames(allHeads);
  return {
    family: 'models',
    handles: (file) => known.includes(String(file['architecture'])),
    async evaluate(testCase, _file, folder) {
      const kind = KINDS[testCase.kind ?? ''];
      if (kind === undefined) throw new Error(`no evaluator for model cases of kind ${testCase.kind}`);
      const trainer = await openModel(folder, options);
      try {
        return await kind(trainer, testCase, folder);
      } finally {
        trainer.close();
      }
    },
  };
}

export const models = modelsEvaluator({ compute: 'fp32', deterministic: true, threads: 2 });

/** A trainable model from a Hugging Face folder. */
async function openModel(folder: string, options: EngineOptions): Promise<NativeTrainer> {
  const path = join(folder, 'config.json');
  const spec = readDecoderSpec(JSON.parse(readFileSync(path, 'utf8')), path, allHeads);
  const trainer = createTrainer(spec, { ...options, trainable: true });
  await loadWeights(folder, trainer);
  return trainer;
}

async function logprobs(trainer: NativeTrainer, { inputs, expected }: GoldenCase) {
  const sequences = inputs['sequences'] as Ragged;
  const { logprobs, entropy } = tokensOf(trainer, sequences, inputs['temperature'] as number, false);
  const got = { logprobs, entropy };
  return {
    got: expected?.['last_logits'] === undefined ? got : { ...got, last_logits: lastLogits(trainer, sequences) },
  };
}

/** Logits at the last position of each sequence. */
function lastLogits(trainer: NativeTrainer, sequences: Ragged): number[][] {
  const { targets_P: _, cuSeqlens, ...batch } = packed(sequences);
  const last = cuSeqlens.subarray(1).map((end) => end - 1);
  return logitRows(trainer, { ...batch, cuSeqlens, positions_P: last }).map((row) => Array.from(row));
}

/** The engine has no padding: the real tokens are packed. */
function withoutPadding(inputs: GoldenCase['inputs']): Ragged {
  const mask = inputs['attention_mask'] as Ragged;
  return (inputs['input_ids'] as Ragged).map((row, i) => row.filter((_, t) => mask[i]![t] === 1));
}

async function leftPadded(trainer: NativeTrainer, { inputs }: GoldenCase) {
  const { logprobs, entropy } = tokensOf(trainer, withoutPadding(inputs), 1, false);
  return { got: { logprobs, entropy } };
}

async function gradient(trainer: NativeTrainer, { inputs, expected }: GoldenCase, folder: string) {
  const objective = objectiveOf(trainer);
  const temperature = inputs['temperature'] as number;
  const loss = objective.lossAndBackward(trainer, inputs['sequences'] as Ragged, temperature, inputs);
  const perTensor = (f: (values: Float32Array) => unknown) => byName(trainer, trainer.read('grads'), f);
  const got = { loss, grad_norm: l2(trainer.read('grads')) };
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

async function trainStep(trainer: NativeTrainer, { inputs }: GoldenCase) {
  const sequences = inputs['sequences'] as Ragged;
  const objective = objectiveOf(trainer);
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
    loss.push(objective.lossAndBackward(trainer, sequences, temperature, step));
    gradNorm.push(trainer.step({ lr, beta1: betas[0], beta2: betas[1], eps, weightDecay, maxGradNorm }).gradNorm);
  }
  const parameters = byName(trainer, trainer.read('weights'), (values) => ({
    sum: values.reduce((sum, x) => sum + x, 0),
    l2: l2(values),
    first8: Array.from(values.subarray(0, 8)),
  }));
  return { got: { loss, grad_norm: gradNorm, parameters, ...objective.after(trainer, sequences) } };
}

function byName(trainer: NativeTrainer, flat: Float32Array, f: (values: Float32Array) => unknown): Outcome {
  return Object.fromEntries(
    trainer.parameters.map(({ name, offset, size }) => [name, f(flat.subarray(offset, offset + size))]),
  );
}

function l2(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
}

/** Name → values of a small safetensors file. */
function readTensors(path: string): Outcome {
  const { tensors } = decodeSafetensors(readFileSync(path), path);
  return Object.fromEntries(Array.from(tensors, ([name, { data }]) => [name, Array.from(data as Float32Array)]));
}
