/** The products with weights that a size needs, as shapes. Attention's own products are not among them. */
import type { ComputeType } from '../core/parameters.ts';
import type { Size } from './sizes.ts';

/** [m, k] times [k, n], `count` times. */
export interface MatrixProduct {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly count: number;
}

/** What is computed for `tokens` tokens. */
export interface ProductsOfWork {
  readonly tokens: number;
  readonly products: readonly MatrixProduct[];
}

/** Floating-point operations of a product. */
export const operationsOf = ({ m, n, k, count }: MatrixProduct): number => 2 * m * n * k * count;

/** A training step: every product forward, for the gradient of its input and for the gradient of its weights. */
export function trainingProducts(size: Size): ProductsOfWork {
  const tokens = size.batch * size.length;
  const products = weightsOf(size).flatMap(({ inputs, outputs, count }) => [
    { m: tokens, n: outputs, k: inputs, count },
    { m: tokens, n: inputs, k: outputs, count },
    { m: outputs, n: inputs, k: tokens, count },
  ]);
  return { tokens, products };
}

/** One token for each of `batch` samples. */
export function decodingProducts(size: Size, batch: number): ProductsOfWork {
  return { tokens: batch, products: weightsOf(size).map((weight) => forward(weight, batch)) };
}

/** `prompts` prompts; only their last tokens need logits. */
export function prefillProducts(size: Size, prompts: number): ProductsOfWork {
  const tokens = prompts * size.prompt;
  const products = weightsOf(size).map((weight) => forward(weight, weight.head ? prompts : tokens));
  return { tokens, products };
}

/** Bytes of all matrices, each of which a decode step reads once. */
export function weightBytes(size: Size, precision: ComputeType): number {
  const bytes = precision === 'bf16' ? 2 : 4;
  return weightsOf(size).reduce((sum, { inputs, outputs, count }) => sum + bytes * inputs * outputs * count, 0);
}

interface Weight {
  readonly inputs: number;
  readonly outputs: number;
  readonly count: number;
  readonly head: boolean;
}

/** q, k and v are one matrix, gate and up another, as the engine computes them. */
function weightsOf({ shape }: Size): readonly Weight[] {
  const { hidden_size: hidden, intermediate_size: ffn, num_hidden_layers: count } = shape;
  const keyWidth = (hidden / shape.num_attention_heads) * shape.num_key_value_heads;
  return [
    { inputs: hidden, outputs: hidden + 2 * keyWidth, count, head: false },
    { inputs: hidden, outputs: hidden, count, head: false },
    { inputs: hidden, outputs: 2 * ffn, count, head: false },
    { inputs: ffn, outputs: hidden, count, head: false },
    { inputs: hidden, outputs: shape.vocab_size, count: 1, head: true },
  ];
}

const forward = ({ inputs, outputs, count }: Weight, m: number): MatrixProduct => ({ m, n: outputs, k: inputs, count });
