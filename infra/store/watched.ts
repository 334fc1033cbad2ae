/**
 * A store that reports the bytes it transfers, so that a worker with a large model or a slow store does not count as
 * stuck.
 */
import type { Store } from '../../core/ports/store.ts';

/** Large pieces are split into parts of this size, so that a slow upload shows progress too. */
const partBytes = 8 * 2 ** 20;

/**
 * Wraps a store. `onBytes` is called for every piece of an object that is streamed in or written in pieces, and after
 * every object that was read or written whole.
 */
export function watchedStore(store: Store, onBytes: () => void): Store {
  return {
    url: store.url,
    place: store.place,
    create: (key, bytes, hold) => store.create(key, bytes, hold),
    put: async (key, bytes) => {
      await store.put(key, bytes instanceof Uint8Array ? bytes : shown(parts(bytes), onBytes));
      onBytes();
    },
    get: async (key, range) => {
      const bytes = await store.get(key, range);
      onBytes();
      return bytes;
    },
    stream: async (key) => {
      const stream = await store.stream(key);
      return stream === undefined ? undefined : shown(stream, onBytes);
    },
    head: (key) => store.head(key),
    settle: () => store.settle(),
    list: (prefix) => store.list(prefix),
    children: (prefix) => store.children(prefix),
    remove: (key, only) => store.remove(key, only),
    localPath: (key) => store.localPath(key),
    ...(store.removeLeftovers && { removeLeftovers: store.removeLeftovers.bind(store) }),
  };
}

async function* shown(pieces: AsyncIterable<Uint8Array>, onBytes: () => void): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    onBytes();
    yield piece;
  }
}

async function* parts(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    for (let at = 0; at < piece.byteLength; at += partBytes) yield piece.subarray(at, at + partBytes);
  }
}
