/** A model with its adapter in its weights: W + scale · B · A, summed in double precision and rounded once. */
import { at } from '../../core/at.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { streamOf } from '../safetensors.ts';
import type { FloatTensor, TensorFolder, TensorStream } from '../safetensors.ts';
import { layerOf, namesOfLayer, scaleOf } from './config.ts';
import type { LoraConfig } from './config.ts';

/**
 * The tensors of the base, those of the adapter's layers with the adapter in them, read as they are sent. The base
 * stays open until then. Throws InvalidInputError when a tensor of the adapter belongs to no layer of the base.
 */
export function mergedTensors(base: TensorFolder, config: LoraConfig, adapter: readonly FloatTensor[]): TensorStream {
  const byName = new Map(adapter.map((tensor) => [tensor.name, tensor]));
  const productOf = (name: string): Product | undefined => {
    const layer = name.replace(/\.weight$/, '');
    const names = namesOfLayer(layer);
    const [a, b] = [byName.get(names.a), byName.get(names.b)];
    return a && b && { a, b, scale: scaleOf(config, layer) };
  };
  const plans = [...base.tensors.values()].map(({ name, shape }) => ({
    name,
    shape,
    product: productOf(name),
    /** A head that the adapter's model has in place of the base's. */
    own: byName.get(`${prefix}${name}`),
  }));
  const used = new Set(plans.flatMap(({ product, own }) => [product?.a.name, product?.b.name, own?.name]));
  const others = adapter.filter(({ name }) => !used.has(name));
  for (const { name } of others)
    if (layerOf(name) !== undefined)
      throw new InvalidInputError(`${name} of the adapter belongs to no layer of ${base.folder}`, {
        where: base.folder,
      });
  const added = others.map(({ name, shape, data }) => ({ name: name.slice(prefix.length), shape, data }));
  return {
    shapes: [...plans, ...added].map(({ name, shape }) => ({ name, shape })),
    send: async (take) => {
      for (const { name, product, own } of plans) {
        if (own !== undefined) {
          await take({ name, start: 0, values: own.data });
          continue;
        }
        let start = 0;
        for await (const values of base.values(name)) {
          if (product !== undefined) addProduct(values, start, product);
          await take({ name, start, values });
          start += values.length;
        }
      }
      await streamOf(added).send(take);
    },
  };
}

const prefix = 'base_model.model.';

interface Product {
  /** [rank][in]. */
  readonly a: FloatTensor;
  /** [out][rank]. */
  readonly b: FloatTensor;
  readonly scale: number;
}

/** values [n], the elements of a weight [out][in] from `start` on, += those of scale · b · a. */
function addProduct(values: Float32Array, start: number, { a, b, scale }: Product): void {
  const [rank, width] = [at(a.shape, 0), at(a.shape, 1)];
  const row = new Float64Array(width);
  for (let done = 0; done < values.length; ) {
    const out = Math.floor((start + done) / width);
    const first = start + done - out * width;
    const last = Math.min(width, first + values.length - done);
    row.fill(0);
    for (let k = 0; k < rank; k++) {
      const factor = scale * at(b.data, out * rank + k);
      for (let i = first, from = k * width; i < last; i++)
        row[i] = (row[i] as number) + factor * (a.data[from + i] as number);
    }
    for (let i = first; i < last; i++, done++) values[done] = (values[done] as number) + (row[i] as number);
  }
}
