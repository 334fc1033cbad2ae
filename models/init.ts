/** Random weights for a new model, as transformers initialises its decoders. */
import type { DecoderConfig } from '../core/ports.ts';
import { expectedTensors } from './config.ts';
import type { FloatTensor } from './safetensors.ts';

/**
 * Norm weights 1, biases 0, all others normal with standard deviation `std`. The same seed gives the same weights
 * everywhere.
 */
export function initialTensors(config: DecoderConfig, seed: number, std: number): FloatTensor[] {
  const random = uniform(seed);
  return expectedTensors(config)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, shape }) => {
      const size = shape.reduce((product, length) => product * length, 1);
      const data = new Float32Array(size);
      if (/norm\.weight$/.test(name)) data.fill(1);
      else if (!name.endsWith('.bias')) for (let i = 0; i < size; i++) data[i] = std * normal(random);
      return { name, shape: [...shape], data };
    });
}

/** Box–Muller; for simplicity only one value of each pair is used. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Mulberry32 (T. Ettinger): 32 bits of state, enough for initial weights. In [0, 1). */
function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
