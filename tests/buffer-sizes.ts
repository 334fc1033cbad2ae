/** The size of the largest buffer that a piece of work makes. */

const views = ['Float64Array', 'Float32Array', 'Int32Array', 'Uint8Array', 'Uint16Array', 'BigInt64Array'] as const;
const copies = ['slice', 'map', 'filter', 'toSorted', 'with', 'toReversed'] as const;

type Method = (...values: unknown[]) => unknown;

/**
 * Runs `work` while every new typed array is measured, made by a constructor, by `from` and `of`, or as a copy. Buffers
 * of Node itself, such as what a file gives, must be told with `note`.
 */
export async function largestBuffer(work: (note: (bytes: number) => void) => Promise<void>): Promise<number> {
  let largest = 0;
  const note = (bytes: number) => void (largest = Math.max(largest, bytes));
  const noteMade = <T>(made: T): T => {
    if (ArrayBuffer.isView(made)) note(made.buffer.byteLength);
    return made;
  };
  const globals = globalThis as unknown as Record<string, { readonly prototype: object }>;
  const own = views.map((name) => [name, globals[name] as { readonly prototype: object }] as const);
  const methods = Object.getPrototypeOf(Uint8Array.prototype) as Record<string, Method>;
  const plain = copies.filter((name) => name in methods).map((name) => [name, methods[name] as Method] as const);
  try {
    for (const [name, view] of own)
      globals[name] = new Proxy(view, {
        construct: (target, values, made) => noteMade(Reflect.construct(target as never, values, made)),
      });
    for (const [name, method] of plain)
      methods[name] = function measured(this: unknown, ...values: unknown[]) {
        return noteMade(method.apply(this, values));
      };
    await work(note);
  } finally {
    for (const [name, view] of own) globals[name] = view;
    for (const [name, method] of plain) methods[name] = method;
  }
  return largest;
}
