/**
 * What a forward pass of transformers' layers keeps for its backward pass. torch's autograd saves these values; they
 * were counted with its hooks of saved tensors, in torch 2.15 and transformers 5.24. What does not fit is computed
 * again: then the first layer is kept, of the others their inputs, and one more while it is computed again
 * (engines/torch/petrel_torch/activations.py).
 *
 * Legend: N tokens of the pack, c bytes of a value (2 in bf16, 4 in fp32), H hidden size.
 *
 *   norm of width W      (4 + 2 c) W: its input in fp32, the normalised values, its output
 *   attention            c (2 query + query + 2 value): queries, keys and values of every head, what it gives for each
 *                        sequence and for the pack; 4 heads
 *   gated unit           4 c width: gate, its activation, up, their product
 *   expert               c (2 H + 4 width): what it gets and gives, too
 *   scores of a layer    none: each sequence attends by itself, without a mask (attention.py). With capped scores
 *                        8 heads N² and a mask of the pack, N²; with chunks that mask alone; on a processor 4 heads N²
 *                        at most where the heads of queries and values differ in size (DeepSeek): then the scores
 *                        themselves are kept
 */
import type { DecoderShape, LayerShape } from '../../models/decoder-shape.ts';

/** Bytes of the model for N tokens, without the scores of attention. */
export function keptBytes({ hidden, layers }: DecoderShape, tokens: number, valueBytes: number): number {
  const perToken = layers.reduce((sum, layer) => sum + keptOfLayer(layer, hidden, valueBytes), 0);
  return tokens * (perToken + normBytes(hidden, valueBytes) + valueBytes * hidden);
}

/** Bytes for each token. */
export function keptOfLayer({ attention, feedForward, norms }: LayerShape, hidden: number, valueBytes: number): number {
  const { heads, query, value, normalised } = attention;
  const { width, chosen, expertWidth } = feedForward;
  return (
    norms * normBytes(hidden, valueBytes) +
    normBytes(normalised, valueBytes) +
    valueBytes * (3 * query + 2 * value) +
    4 * heads +
    valueBytes * (4 * width + chosen * (2 * hidden + 4 * expertWidth))
  );
}

/** What is kept when every layer but the first is computed again; `keptBytes` where that is less. */
export function leastBytes(shape: DecoderShape, tokens: number, valueBytes: number): number {
  const { hidden, layers } = shape;
  const largest = Math.max(...layers.map((layer) => keptOfLayer(layer, hidden, valueBytes)));
  const inputs = layers.length * valueBytes * hidden;
  return Math.min(
    keptBytes(shape, tokens, valueBytes),
    tokens * (2 * largest + inputs + normBytes(hidden, valueBytes)),
  );
}

/** Scores of attention where they are kept, and the mask of a pack where there is one. */
export function scoreBytes({ layers }: DecoderShape, tokens: number, onCards: boolean): number {
  const perPair = layers.reduce((sum, { attention: { heads, query, value, isCapped } }) => {
    if (isCapped) return sum + 8 * heads;
    return sum + (query === value || onCards ? 0 : 4 * heads);
  }, 0);
  const mask = layers.some(({ attention }) => attention.isMasked) ? 1 : 0;
  return tokens * tokens * (mask + perPair);
}

/** A norm computes in fp32, and keeps its input so. */
const normBytes = (width: number, valueBytes: number): number => width * (4 + 2 * valueBytes);
