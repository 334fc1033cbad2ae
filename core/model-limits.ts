/**
 * Limits for models that petrel reads. A config is untrusted input: without a limit `num_hidden_layers: 2147483648`
 * fills the heap before any other check, and a product of two fields overflows the engine's 32-bit integers. Each limit
 * is far above the largest existing models.
 */
export const modelLimits = {
  layers: 10_000,
  hidden: 1 << 20,
  heads: 1 << 16,
  kvHeads: 1 << 16,
  headDim: 1 << 16,
  /** heads * headDim */
  queryWidth: 1 << 24,
  ffn: 1 << 24,
  vocab: 1 << 26,
  /** Prompt and response together, in tokens. */
  positions: 1 << 30,
} as const;
