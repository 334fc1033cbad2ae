/** A store that lets two writers win the same key cannot hold decisions. Found out before the first one. */
import { randomBytes } from 'node:crypto';
import { TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports.ts';

/** Throws TerminalError `StoreDoesNotFence` unless exactly one of `writers` creates wins and its bytes stay. */
export async function probeStore(store: Store, writers = 8): Promise<void> {
  const key = `probe/${randomBytes(8).toString('hex')}`;
  const bodies = Array.from({ length: writers }, (_, index) => new TextEncoder().encode(`writer ${index}`));
  const outcomes = await Promise.all(bodies.map((body) => store.create(key, body)));
  const winner = outcomes.indexOf('created');
  const kept = await store.get(key);
  await store.remove(key);
  const wins = outcomes.filter((outcome) => outcome === 'created').length;
  if (wins !== 1 || kept === undefined || Buffer.compare(kept, bodies[winner] ?? new Uint8Array()) !== 0) {
    throw new TerminalError('StoreDoesNotFence', `${store.url}: ${wins} of ${writers} simultaneous creates of one key won; exactly one must`, {
      hint: 'Use a local folder, or an object store with conditional writes (If-None-Match)',
    });
  }
}
