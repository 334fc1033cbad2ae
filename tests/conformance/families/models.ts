import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { EngineOptions } from '../../../core/ports.ts';
import { readDecoderConfig } from '../../../models/config.ts';
import { decodeSafetensors } from '../../../models/safetensors.ts';
import { loadWeights } from '../../../models/weights.ts';
import { createTrainer, type NativeTrainer } from '../../../native/index.ts';
import type { Evaluator, GoldenCase, Outcome } from '../types.ts';
import { greedy } from './models-greedy.ts';
import { packed, unpacked, type Ragged } from './sequences.ts';

const ARCHITECTURES = ['LlamaForCausalLM', 'Qwen2ForCausalLM', 'Qwen3ForCausalLM'];

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
};

/** Compares decoders of the native engine with Hugging Face's float64 results, under the given options. */
export function modelsEvaluator(options: EngineOptions): Evaluator {
  return {
    family: 'models',
    handles: (file) => ARCHITECTURES.includes(String(file['architecture'])),
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
export async function openModel(folder: string, options: EngineOptions): Promise<NativeTrainer> {
  const config = readDecoderConfig(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')));
  const trainer = createTrainer(config, { ...options, trainable: true });
  await loadWeights(folder, trainer);
  return trainer;
}

/** Log-probs of every next token and entropies at every position. The last log-prob is for token 0 and is not used. */
function score(trainer: NativeTrainer, sequences: Ragged, temperature: number, keep: boolean) {
  const { handle, logProbs_P, entropy_P } = trainer.forward(packed(sequences), { temperature, entropy: true, keep });
  return { handle, logprobs: unpacked(sequences, logProbs_P, -1), entropy: unpacked(sequences, entropy_P!, 0) };
}

async function logprobs(trainer: NativeTrainer, { inputs, expected }: GoldenCase) {
  const { logprobs, entropy } = score(trainer, inputs['sequences'] as Ragged, inputs['temperature'] as number, false);
  const got = { logprobs, entropy };
  if (expected?.['last_logits'] === undefined) return { got };
  // The port gives log-probs and no logits. They differ by a constant per row, so both sides are centred before the
  // comparison.
  const lastLogits = expected['last_logits'] as number[][];
  return {
    got: { ...got, last_logits: lastDistributions(trainer, inputs['sequences'] as Ragged).map(centred) },
    expected: { ...expected, last_logits: lastLogits.map(centred) },
  };
}

/** Log-probs of all tokens at the last position of each sequence: one copy of the sequence per token. */
function lastDistributions(trainer: NativeTrainer, sequences: Ragged): number[][] {
  const tokens = Array.from({ length: trainer.config.vocab }, (_, token) => token);
  return sequences.map((sequence) => {
    const copies = tokens.map(() => sequence);
    const batch = packed(copies);
    const last = copies.map((_, i) => (i + 1) * sequence.length - 1);
    const only = { ...batch, positions_P: Int32Array.from(last), targets_P: Int32Array.from(tokens) };
    return Array.from(trainer.forward(only, { temperature: 1, entropy: false, keep: false }).logProbs_P);
  });
}

function centred(row: readonly number[]): number[] {
  const mean = row.reduce((sum, x) => sum + x, 0) / row.length;
  return row.map((x) => x - mean);
}

/** The engine has no padding: the real tokens are packed. */
async function leftPadded(trainer: NativeTrainer, { inputs }: GoldenCase) {
  const mask = inputs['attention_mask'] as Ragged;
  const sequences = (inputs['input_ids'] as Ragged).map((row, i) => row.filter((_, t) => mask[i]![t] === 1));
  const { logprobs, entropy } = score(trainer, sequences, 1, false);
  return { got: { logprobs, entropy } };
}

/** The loss Σ c·logprob + Σ e·entropy; its gradient is added to the trainer's. */
function lossAndBackward(trainer: NativeTrainer, sequences: Ragged, temperature: number, c: Ragged, e: Ragged): number {
  const { handle, logprobs, entropy } = score(trainer, sequences, temperature, true);
  const dLogProbs = c.flatMap((row) => [...row, 0]);
  trainer.backward(handle, Float32Array.from(dLogProbs), Float32Array.from(e.flat()));
  return weighted(c, logprobs) + weighted(e, entropy);
}

function weighted(weights: Ragged, values: Ragged): number {
  const flat = values.flat();
  return weights.flat().reduce((sum, w, i) => sum + w * flat[i]!, 0);
}

async function gradient(trainer: NativeTrainer, { inputs, expected }: GoldenCase, folder: string) {
  const loss = lossAndBackward(
    trainer,
    inputs['sequences'] as Ragged,
    inputs['temperature'] as number,
    inputs['c'] as Ragged,
    inputs['e'] as Ragged,
  );
  const perTensor = (f: (values: Float32Array) => unknown) => byName(trainer, trainer.grads, f);
  const got = { loss, grad_norm: l2(trainer.grads) };
  if (expected?.['gradients'] === undefined) return { got: { ...got, gradient_l2: perTensor(l2) } };
  const file = readTensors(join(folder, String(expected['gradients'])));
  return {
    got: { ...got, gradients: perTensor((values) => Array.from(values)) },
    expected: { ...expected, gradients: file },
  };
}

interface StepInputs {
  readonly c: Ragged;
  readonly e: Ragged;
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
  const {
    lr,
    betas,
    eps,
    weight_decay: weightDecay,
    max_grad_norm: maxGradNorm = 0,
  } = inputs['optimizer'] as OptimizerInputs;
  const loss: number[] = [];
  const gradNorm: number[] = [];
  for (const { c, e } of inputs['steps'] as readonly StepInputs[]) {
    loss.push(lossAndBackward(trainer, sequences, (inputs['temperature'] as number | undefined) ?? 1, c, e));
    gradNorm.push(trainer.step({ lr, beta1: betas[0], beta2: betas[1], eps, weightDecay, maxGradNorm }).gradNorm);
  }
  const parameters = byName(trainer, trainer.weights, (values) => ({
    sum: values.reduce((sum, x) => sum + x, 0),
    l2: l2(values),
    first8: Array.from(values.subarray(0, 8)),
  }));
  return {
    got: { loss, grad_norm: gradNorm, parameters, logprobs_after: score(trainer, sequences, 1, false).logprobs },
  };
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
