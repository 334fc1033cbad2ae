/** What every store must do, whatever it is made of. Each adapter's test calls this with a way to open a fresh one. */
import { describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports.ts';
import { probeStore } from '../../infra/store/probe.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (data: Uint8Array | undefined) => (data === undefined ? undefined : new TextDecoder().decode(data));

/** `open(again)`: a second handle on the same place, as another process has it. */
export function storeContract(name: string, open: () => Promise<{ readonly store: Store; readonly again: () => Promise<Store> }>): void {
  describe(`${name} as a store`, () => {
    it('gives back what was put, whole, in ranges and as a stream', async () => {
      const { store } = await open();
      await store.put('a/b/c', bytes('0123456789'));
      expect(text(await store.get('a/b/c'))).toBe('0123456789');
      expect(text(await store.get('a/b/c', [2, 5]))).toBe('234');
      expect(await store.head('a/b/c')).toBe(10);
      const chunks: Uint8Array[] = [];
      for await (const chunk of (await store.stream('a/b/c')) ?? []) chunks.push(chunk);
      expect(text(Buffer.concat(chunks))).toBe('0123456789');
    });

    it('says undefined of what is absent, and removing it is no error', async () => {
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

    it('lets exactly one of 32 simultaneous creates win, and keeps its bytes for every reader', async () => {
      const { store, again } = await open();
      const handles = await Promise.all(Array.from({ length: 32 }, () => again()));
      const outcomes = await Promise.all(handles.map((handle, i) => handle.create('decision', bytes(`writer ${i}`))));
      expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(1);
      const winner = outcomes.indexOf('created');
      expect(text(await store.get('decision'))).toBe(`writer ${winner}`);
      expect(await store.create('decision', bytes('late'))).toBe('exists');
      expect(text(await (await again()).get('decision'))).toBe(`writer ${winner}`);
    });

    it('lists keys ascending and shows no half-written ones', async () => {
      const { store } = await open();
      await Promise.all(['r/2', 'r/10', 'r/x/1', 's/1'].map((key) => store.put(key, bytes(key))));
      expect(await store.list('r/')).toEqual(['r/10', 'r/2', 'r/x/1']);
      expect(await store.children('r/')).toEqual(['10', '2', 'x/']);
    });

    it('passes the probe that every run starts with', async () => {
      const { store } = await open();
      await probeStore(store);
      expect(await store.list('probe/')).toEqual([]);
    });
  });
}
