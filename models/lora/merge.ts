/** A model with its adapter in its weights: W + scale · B · A, summed in double precision and rounded once. */
import { at } from '../../core/at.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { FloatTensor, TensorFolder } from '../safetensors.ts';
import { layerOf, namesOfLayer, scaleOf } from './config.ts';
import type { LoraConfig } from './config.ts';

/**
 * The tensors of the base, those of the adapter's layers with the adapter in them. Throws InvalidInputError when a
 * tensor of the adapter belongs to no layer of the base.
 */
export async function mergedTensors(
  base: TensorFolder,
  config: LoraConfig,
  adapter: readonly FloatTensor[],
): Promise<FloatTensor[]> {
  const byName = new Map(adapter.map((tensor) => [tensor.name, tensor]));
  const used = new Set<string>();
  const merged: FloatTensor[] = [];
  for (const { name, shape } of base.tensors.values()) {
    const data = await valuesOf(base, name, shape);
    const layer = name.replace(/\.weight$/, '');
    const names = namesOfLayer(layer);
    const [a, b] = [byName.get(names.a), byName.get(names.b)];
    if (a !== undefined && b !== undefined) {
      addProduct(data, { a, b, scale: scaleOf(config, layer) });
      used.add(a.name).add(b.name);
    }
    // A head that the adapter's model has in place of the base's.
    const own = byName.get(`base_model.model.${name}`);
    if (own !== undefined) used.add(own.name);
    merged.push({ name, shape, data: own?.data ?? data });
  }
  for (const { name, shape, data } of adapter.filter((tensor) => !used.has(tensor.name))) {
    if (layerOf(name) !== undefined)
      throw new InvalidInputError(`${name} of the adapter belongs to no layer of ${base.folder}`, {
        where: base.folder,
      });
    merged.push({ name: name.slice('base_model.model.'.length), shape, data });
  }
  return merged;
}

async function valuesOf(folder: TensorFolder, name: string, shape: readonly number[]): Promise<Float32Array> {
  const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
  let next = 0;
  for await (const piece of folder.values(name)) {
    values.set(piece, next);
    next += piece.length;
  }
  return values;
}

interface Product {
  /** [rank][in]. */
  readonly a: FloatTensor;
  /** [out][rank]. */
  readonly b: FloatTensor;
  readonly scale: number;
}

/** weight [out][in] += scale · b · a. */
function addProduct(weight: Float32Array, { a, b, scale }: Product): void {
  const [rank, width] = [at(a.shape, 0), at(a.shape, 1)];
  const row = new Float64Array(width);
  for (let out = 0; out * width < weight.length; out++) {
    row.fill(0);
    for (let k = 0; k < rank; k++) {
      const factor = scale * at(b.data, out * rank + k);
      for (let i = 0, from = k * width; i < width; i++)
        row[i] = (row[i] as number) + factor * (a.data[from + i] as number);
    }
    for (let i = 0, from = out * width; i < width; i++)
      weight[from + i] = (weight[from + i] as number) + (row[i] as number);
  }
}
