/** Random weights for a new model, as transformers initialises its decoders. */
import type { DecoderSpec, NormSpec } from './spec.ts';
import { cos } from '../../core/math/cos.ts';
import { log } from '../../core/math/log.ts';
import type { FloatTensor } from '../../models/safetensors.ts';

/**
 * Norms multiply by 1, biases are 0, all others normal with standard deviation `std`. The same seed gives the same
 * weights everywhere.
 */
export function initialTensors(spec: DecoderSpec, seed: number, std: number): FloatTensor[] {
  const norms = new Map(allNorms(spec).map(({ weight, offset }) => [weight, 1 - offset]));
  return randomTensors(spec.tensors, norms, seed, std);
}

/** Makes any tensors in the manner of `initialTensors`. `norms`: values of those that are filled with one. */
export function randomTensors(
  shapes: readonly { readonly name: string; readonly shape: readonly number[] }[],
  norms: ReadonlyMap<string, number>,
  seed: number,
  std: number,
): FloatTensor[] {
  const random = uniform(seed);
  return shapes.map(({ name, shape }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    const data = new Float32Array(size);
    const one = norms.get(name);
    if (one !== undefined) data.fill(one);
    else if (!name.endsWith('.bias')) for (let i = 0; i < size; i++) data[i] = std * normal(random);
    return { name, shape: [...shape], data };
  });
}

function allNorms({ layers, finalNorm }: DecoderSpec): readonly NormSpec[] {
  return [
    finalNorm,
    ...layers.flatMap(({ norms, mixer }) =>
      [...Object.values(norms), mixer.queryNorm, mixer.keyNorm].filter((norm): norm is NormSpec => norm !== undefined),
    ),
  ];
}

/** Box–Muller; for simplicity only one value of each pair is used. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * log(1 - random())) * cos(2 * Math.PI * random());
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
