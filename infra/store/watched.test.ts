import { expect, it } from 'vitest';
import { MemoryStore } from '../../tests/memory-store.ts';
import { watchedStore } from './watched.ts';

it('reports progress every few MiB of a streamed read or a write in pieces', async () => {
  let seen = 0;
  const store = watchedStore(new MemoryStore(), () => (seen += 1));
  async function* pieces() {
    yield new Uint8Array(20 * 2 ** 20);
    yield new Uint8Array(1);
  }
  await store.put('large', pieces());
  expect(seen).toBe(5);
  expect(await store.head('large')).toBe(20 * 2 ** 20 + 1);
  for await (const _ of (await store.stream('large')) ?? []);
  expect(seen).toBeGreaterThan(5);
});

it('reports an object that is read or written whole when it is there', async () => {
  let seen = 0;
  const store = watchedStore(new MemoryStore(), () => (seen += 1));
  await store.put('small', Uint8Array.of(1));
  expect(seen).toBe(1);
  expect(await store.get('small')).toEqual(Uint8Array.of(1));
  expect(seen).toBe(2);
});
