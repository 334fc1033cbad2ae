/** Float32 tensors, in memory or as a stream of pieces. */

export interface NamedShape {
  readonly name: string;
  readonly shape: readonly number[];
}

export interface FloatTensor extends NamedShape {
  readonly data: Float32Array;
}

/** Values of a tensor from element `start` on. They may change when the receiver's promise has resolved. */
export interface TensorPiece {
  readonly name: string;
  readonly start: number;
  readonly values: Float32Array;
}

/** Tensors that need not be in memory at once. `send` gives each value once, the pieces in any order. */
export interface TensorStream {
  readonly shapes: readonly NamedShape[];
  readonly send: (take: (piece: TensorPiece) => Promise<void>) => Promise<void>;
}

export type Tensors = readonly FloatTensor[] | TensorStream;

export function streamOf(tensors: Tensors): TensorStream {
  if ('send' in tensors) return tensors;
  return {
    shapes: tensors,
    send: async (take) => {
      for (const { name, data } of tensors) await take({ name, start: 0, values: data });
    },
  };
}

/** All of them in memory. */
export async function gathered({ shapes, send }: TensorStream): Promise<FloatTensor[]> {
  const tensors = shapes.map(({ name, shape }) => ({
    name,
    shape,
    data: new Float32Array(shape.reduce((product, size) => product * size, 1)),
  }));
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  await send(async ({ name, start, values }) => byName.get(name)?.data.set(values, start));
  return tensors;
}
