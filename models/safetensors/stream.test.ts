import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filling } from '../../tests/filling.ts';
import { encodeSafetensors, readSafetensorsStream } from '../safetensors.ts';

const tensors = fc.dictionary(
  fc.string({ minLength: 1, maxLength: 6 }).filter((name) => name !== '__metadata__' && name !== '__proto__'),
  fc.array(fc.float({ noNaN: true }), { maxLength: 40 }),
  { maxKeys: 4 },
);
const encode = (values: Readonly<Record<string, readonly number[]>>) =>
  encodeSafetensors(
    Object.fromEntries(
      Object.entries(values).map(([name, list]) => [
        name,
        { dtype: 'F32' as const, shape: [list.length], data: new Float32Array(list) },
      ]),
    ),
  );

async function* cut(bytes: Uint8Array, sizes: readonly number[]) {
  let at = 0;
  for (const size of sizes) yield bytes.subarray(at, (at += size));
  yield bytes.subarray(at);
}

/** The pieces that the stream's sinks received. */
async function read(
  bytes: Uint8Array,
  sizes: readonly number[],
  fileBytes = bytes.length,
): Promise<Record<string, number[]>> {
  const found = new Map<string, Float32Array>();
  await readSafetensorsStream(cut(bytes, sizes), fileBytes, 'test', ({ name, begin, end }) => {
    const target = new Float32Array((end - begin) / 4);
    found.set(name, target);
    return filling(target);
  });
  return Object.fromEntries(
    [...found].filter(([, values]) => values.length > 0).map(([name, values]) => [name, [...values]]),
  );
}

describe('a safetensors file as a stream', () => {
  it('gives every tensor its values, however the stream is divided', async () => {
    await fc.assert(
      fc.asyncProperty(tensors, fc.array(fc.nat(30), { maxLength: 30 }), async (values, sizes) => {
        const wanted = Object.entries(values)
          .filter(([, list]) => list.length > 0)
          .map(([name, list]) => [name, [...new Float32Array(list)]]);
        expect(await read(encode(values), sizes)).toEqual(Object.fromEntries(wanted));
      }),
    );
  });

  it('is refused when it is shorter or longer than it should be', async () => {
    const bytes = encode({ a: [1, 2, 3] });
    for (const length of [0, 7, 9, bytes.length - 1])
      await expect(read(bytes.subarray(0, length), [3], bytes.length)).rejects.toMatchObject({ code: 'InvalidInput' });
    await expect(read(Buffer.concat([bytes, Buffer.alloc(4)]), [20], bytes.length)).rejects.toThrow(
      'after its last tensor',
    );
  });
});
