/**
 * A model of a store, which is a table of keys and bytes, and sequences of operations that compare a real store with
 * it.
 */
import fc from 'fast-check';
import type { Store } from '../../core/ports/store.ts';

type Operation =
  | { readonly type: 'create' | 'put' | 'streamed put'; readonly key: string; readonly body: Uint8Array }
  | { readonly type: 'get' | 'stream' | 'head' | 'remove' | 'list' | 'children'; readonly key: string }
  | { readonly type: 'range'; readonly key: string; readonly range: readonly [number, number] };

const objects = fc.constantFrom('1', 'a', 'ab', 'f/1', 'f/2', 'f/g/1', 'h/ü 1+&?', 'h/%41');
const folders = fc.constantFrom('f/', 'f/g/', 'h/');
const body = fc.uint8Array({ maxLength: 40 });

/** Each key is an object or a folder, never both: petrel writes nothing under another object. */
export const operations: fc.Arbitrary<Operation[]> = fc.array(
  fc.oneof(
    fc.record({
      type: fc.constantFrom('create' as const, 'put' as const, 'streamed put' as const),
      key: objects,
      body,
    }),
    fc.record({
      type: fc.constantFrom('get' as const, 'stream' as const, 'head' as const, 'remove' as const),
      key: objects,
    }),
    fc.record({ type: fc.constantFrom('remove' as const, 'list' as const, 'children' as const), key: folders }),
    fc.record({ type: fc.constant('list' as const), key: fc.constantFrom('', 'a', 'f/g', 'h/%') }),
    fc.record({
      type: fc.constant('range' as const),
      key: objects,
      range: fc.tuple(fc.nat(45), fc.nat(45)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const),
    }),
  ),
  { maxLength: 14 },
);

/** Runs the operations on both, under `root`. Returns the differences as texts. */
export async function runOnModel(store: Store, root: string, sequence: readonly Operation[]): Promise<string[]> {
  const table = new Map<string, Uint8Array>();
  const differences: string[] = [];
  for (const operation of sequence) {
    const wanted = show(onTable(table, operation));
    const got = show(await onStore(store, root, operation, table));
    if (wanted !== got) differences.push(`${operation.type} ${operation.key}: expected ${wanted}, got ${got}`);
  }
  return differences;
}

function onTable(table: Map<string, Uint8Array>, operation: Operation): unknown {
  const { key } = operation;
  const under = () => [...table.keys()].filter((name) => name.startsWith(key)).sort();
  switch (operation.type) {
    case 'create':
      if (table.has(key)) return 'exists';
      table.set(key, operation.body);
      return 'created';
    case 'put':
    case 'streamed put':
      return void table.set(key, operation.body);
    case 'get':
    case 'stream':
      return table.get(key);
    case 'range':
      return table.get(key)?.subarray(...operation.range);
    case 'head':
      return table.get(key)?.length;
    case 'remove':
      for (const name of key.endsWith('/') ? under() : [key]) table.delete(name);
      return undefined;
    case 'list':
      return under();
    case 'children':
      return [...new Set(under().map((name) => /^[^/]*\/?/.exec(name.slice(key.length))?.[0]))].sort();
  }
}

async function onStore(
  store: Store,
  root: string,
  operation: Operation,
  table: ReadonlyMap<string, Uint8Array>,
): Promise<unknown> {
  const key = root + operation.key;
  switch (operation.type) {
    case 'create':
      return store.create(key, operation.body);
    case 'put':
      return store.put(key, operation.body);
    case 'streamed put':
      return store.put(key, halves(operation.body));
    case 'get':
      return store.get(key);
    case 'stream':
      return whole(await store.stream(key));
    case 'range':
      return store.get(key, operation.range);
    case 'head':
      return store.head(key);
    case 'remove':
      return store.remove(key);
    case 'list':
      return (await store.list(key)).map((name) => name.slice(root.length));
    case 'children':
      return (await store.children(key)).filter(
        (name) => !name.endsWith('/') || [...table.keys()].some((one) => one.startsWith(operation.key + name)),
      ); // an empty folder may still be listed
  }
}

async function* halves(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes.subarray(0, bytes.length >> 1);
  yield bytes.subarray(bytes.length >> 1);
}

async function whole(stream: AsyncIterable<Uint8Array> | undefined): Promise<Uint8Array | undefined> {
  if (stream === undefined) return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function show(value: unknown): string {
  return value instanceof Uint8Array
    ? `bytes ${Buffer.from(value).toString('hex')}`
    : (JSON.stringify(value) ?? 'undefined');
}
