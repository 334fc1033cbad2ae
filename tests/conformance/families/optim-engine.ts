import { adamw as adamwStep, clipGradients } from '../../../native/index.ts';
import type { Evaluator, GoldenCase, GoldenFile, Outcome } from '../types.ts';

/** The engine's optimiser over plain arrays. */
export const optimEngine: Evaluator = {
  family: 'optim',
  handles: (file) => file.name in CASES,
  async evaluate(testCase: GoldenCase, file: GoldenFile) {
    return { got: CASES[file.name]!(testCase) };
  },
};

const CASES: Readonly<Record<string, (testCase: GoldenCase) => Outcome>> = { adamw, grad_clip: gradClip };

type Nested = number | string | readonly Nested[];

interface Tensor {
  readonly params: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly vMax: Float32Array | undefined;
  steps: number;
}

/** Each tensor separately, because a tensor without a gradient (null) is skipped and keeps its step count. */
function adamw({ params, inputs }: GoldenCase): Outcome {
  const { lr_per_step, betas, eps, weight_decay, amsgrad } = params as unknown as {
    lr_per_step: number[];
    betas: [number, number];
    eps: number;
    weight_decay: number;
    amsgrad: number;
  };
  const shapes = inputs['params'] as Nested[];
  const tensors: Tensor[] = shapes.map((nested) => {
    const values = flat(nested);
    const zeros = (): Float32Array => new Float32Array(values.length);
    return { params: values, m: zeros(), v: zeros(), vMax: amsgrad ? zeros() : undefined, steps: 0 };
  });
  const after = (inputs['grads'] as (Nested | null)[][]).map((grads, t) => {
    grads.forEach((grad, i) => {
      if (grad === null) return;
      const tensor = tensors[i]!;
      tensor.steps += 1;
      const settings = {
        lr: lr_per_step[t]!,
        beta1: betas[0],
        beta2: betas[1],
        eps,
        weightDecay: weight_decay,
        maxGradNorm: 0,
      };
      adamwStep(tensor.params, flat(grad), tensor.m, tensor.v, settings, tensor.steps, tensor.vMax);
    });
    return tensors.map((tensor, i) => shaped(tensor.params, shapes[i]!));
  });
  const all = (key: 'm' | 'v') =>
    tensors.map((tensor, i) => (tensor.steps === 0 ? null : shaped(tensor[key], shapes[i]!)));
  return { params_after_step: after, exp_avg: all('m'), exp_avg_sq: all('v') };
}

function gradClip({ params, inputs }: GoldenCase): Outcome {
  const grads = inputs['grads'] as (Nested | null)[];
  const all = Float32Array.from(grads.flatMap((grad) => (grad === null ? [] : Array.from(flat(grad)))));
  const norm = clipGradients(all, (params as { max_norm: number }).max_norm);
  let at = 0;
  const clipped = grads.map((grad) => {
    if (grad === null) return null;
    const size = flat(grad).length;
    return shaped(all.subarray(at, (at += size)), grad);
  });
  return { grad_norm: norm, clipped_grads: clipped, optimizer_step_taken: Number.isFinite(norm) ? 1 : 0 };
}

function flat(nested: Nested): Float32Array {
  return Float32Array.from(Array.isArray(nested) ? (nested as Nested[]).flat(8).map(Number) : [Number(nested)]);
}

/** Values in the nesting of `like`. */
function shaped(values: Float32Array, like: Nested): Nested {
  let at = 0;
  const fill = (node: Nested): Nested => (Array.isArray(node) ? (node as Nested[]).map(fill) : values[at++]!);
  return fill(like);
}
