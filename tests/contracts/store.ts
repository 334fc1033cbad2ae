/** The contract of every store. Each adapter's test calls this with a function that opens a new store. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { probeStore, raceCreates } from '../../infra/store/probe.ts';
import { sha256 } from '../../log/objects/digest.ts';
import { operations, runOnModel } from './store-model.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (data: Uint8Array | undefined) => (data === undefined ? undefined : new TextDecoder().decode(data));

/** `open(again)`: a second connection to the same place, as another process has it. */
export function storeContract(
  name: string,
  open: () => Promise<{ readonly store: Store; readonly again: () => Promise<Store> }>,
): void {
  describe(`${name} as a store`, () => {
    it('returns an object whole, in ranges and as a stream', async () => {
      const { store } = await open();
      await store.put('a/b/c', bytes('0123456789'));
      expect(text(await store.get('a/b/c'))).toBe('0123456789');
      expect(text(await store.get('a/b/c', [2, 5]))).toBe('234');
      expect(await store.head('a/b/c')).toBe(10);
      expect(text(Buffer.concat(await collect(await store.stream('a/b/c'))))).toBe('0123456789');
    });

    it('returns undefined for an absent object, and removes it without an error', async () => {
      const { store } = await open();
      expect(await store.get('nothing')).toBeUndefined();
      expect(await store.get('nothing/below')).toBeUndefined();
      expect(await store.head('nothing')).toBeUndefined();
      expect(await store.stream('nothing')).toBeUndefined();
      expect(await store.list('nothing/')).toEqual([]);
      await store.remove('nothing');
    });

    it('streams a put that is larger than any buffer', async () => {
      const { store } = await open();
      async function* pieces() {
        for (let i = 0; i < 64; i++) yield new Uint8Array(1 << 16).fill(i);
      }
      await store.put('big', pieces());
      expect(await store.head('big')).toBe(64 << 16);
      expect((await store.get('big', [63 << 16, (63 << 16) + 2]))?.[0]).toBe(63);
    });

    it('stores large objects correctly, from one buffer and from streams', async () => {
      const { store } = await open();
      const large = new Uint8Array(21 * 1024 * 1024 + 5).map((_, i) => (i * 31 + (i >> 13)) & 255);
      async function* pieces() {
        for (let at = 0; at < large.length; at += 3_000_001) yield large.subarray(at, at + 3_000_001);
      }
      await store.put('large/whole', large);
      await store.put('large/streamed', pieces());
      const digest = sha256(large);
      for (const key of ['large/whole', 'large/streamed']) {
        expect(await store.head(key)).toBe(large.length);
        expect(sha256((await store.get(key)) ?? '')).toBe(digest);
        expect(sha256(Buffer.concat(await collect(await store.stream(key))))).toBe(digest);
      }
      expect(text(await store.get('large/whole', [large.length - 2, large.length + 9]))).toBe(text(large.subarray(-2)));
      expect(await store.list('large/')).toEqual(['large/streamed', 'large/whole']);
    });

    it('shows nothing of a put whose source fails', async () => {
      const { store } = await open();
      async function* broken() {
        for (let i = 0; i < 12; i++) yield new Uint8Array(1 << 20);
        throw new Error('the source broke off');
      }
      await expect(store.put('broken/one', broken())).rejects.toThrow('the source broke off');
      expect(await store.get('broken/one')).toBeUndefined();
      expect(await store.list('broken/')).toEqual([]);
    });

    it('lets exactly one of 32 simultaneous creates succeed', async () => {
      const { store, again } = await open();
      const bodies = Array.from({ length: 32 }, (_, i) => bytes(`writer ${i}`));
      const outcomes = await raceCreates(store, 'decision', bodies);
      expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(1);
      const winner = outcomes.indexOf('created');
      expect(text(await (await again()).get('decision'))).toBe(`writer ${winner}`);
      expect(await store.create('decision', bytes('late'))).toBe('exists');
      expect(await store.create('decision', bodies[winner] ?? bytes(''))).toBe('exists');
      expect(text(await store.get('decision'))).toBe(`writer ${winner}`);
    });

    it('removes everything under a prefix, and nothing else', async () => {
      const { store } = await open();
      await Promise.all(['x/1', 'x/2/3', 'x1', 'y/1'].map((key) => store.put(key, bytes(key))));
      await store.remove('x/');
      await store.remove('nothing/');
      expect(await store.list('x')).toEqual(['x1']);
      expect(await store.list('y/')).toEqual(['y/1']);
    });

    it('removes only the selected objects of a prefix', async () => {
      const { store } = await open();
      await Promise.all(['x/1', 'x/2/3', 'x/2/4', 'y/1'].map((key) => store.put(key, bytes(key))));
      await store.remove('x/', (key) => key === 'x/1' || key === 'x/2/4' || key === 'y/1');
      expect(await store.list('x/')).toEqual(['x/2/3']);
      expect(await store.list('y/')).toEqual(['y/1']);
    });

    it('behaves like a table of keys and bytes for any sequence of operations', async () => {
      const { store } = await open();
      let round = 0;
      await fc.assert(
        fc.asyncProperty(operations, async (sequence) => {
          const root = `model/${round++}/`;
          expect(await runOnModel(store, root, sequence)).toEqual([]);
        }),
        { numRuns: 12 },
      );
    });

    it('lists keys ascending, without partly written objects', async () => {
      const { store } = await open();
      await Promise.all(['r/2', 'r/10', 'r/x/1', 's/1'].map((key) => store.put(key, bytes(key))));
      expect(await store.list('r/')).toEqual(['r/10', 'r/2', 'r/x/1']);
      expect(await store.children('r/')).toEqual(['10', '2', 'x/']);
    });

    it('passes the probe before the first run', async () => {
      const { store, again } = await open();
      await probeStore(store, await again());
      expect(await store.list('probe/')).toEqual([]);
    });
  });
}

async function collect(stream: AsyncIterable<Uint8Array> | undefined): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream ?? []) chunks.push(chunk);
  return chunks;
}
