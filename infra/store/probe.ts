/**
 * Probes whether atomic create works. A store in which two writers can create the same key cannot hold decisions, so
 * this is checked before the first one.
 */
import { randomBytes } from 'node:crypto';
import { at } from '../../core/at.ts';
import { TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';

/** Number of simultaneous creates: with this many, a server that checks and then writes lets several succeed. */
const probeWriters = 32;

/**
 * Throws TerminalError `StoreDoesNotFence` unless exactly one of `writers` simultaneous creates succeeds and `reader`,
 * another connection to the same store, sees its bytes.
 */
export async function probeStore(store: Store, reader: Store = store, writers = probeWriters): Promise<void> {
  const key = `probe/${randomBytes(8).toString('hex')}`;
  const bodies = Array.from({ length: writers }, (_, index) => new TextEncoder().encode(`writer ${index}`));
  const outcomes = await raceCreates(store, key, bodies);
  const winner = outcomes.indexOf('created');
  const kept = await reader.get(key);
  await store.remove(key);
  const wins = outcomes.filter((outcome) => outcome === 'created').length;
  if (wins !== 1)
    throw doesNotFence(store, `${wins} of ${writers} simultaneous creates of one key succeeded, expected exactly one`);
  if (kept === undefined || Buffer.compare(kept, at(bodies, winner)) !== 0) {
    throw doesNotFence(
      store,
      `one of ${writers} simultaneous creates of one key succeeded, but another connection reads ${kept === undefined ? 'nothing' : 'the bytes of another writer'}`,
    );
  }
}

/**
 * Creates one key with each of the bodies; all requests wait before their decisive byte and continue together. Outcomes
 * in the order of the bodies.
 */
export async function raceCreates(
  store: Store,
  key: string,
  bodies: readonly Uint8Array[],
): Promise<('created' | 'exists')[]> {
  const gate = new Gate(bodies.length);
  try {
    return await Promise.all(bodies.map((body) => store.create(key, body, () => gate.arrive())));
  } finally {
    gate.open(); // a writer that failed early must not hold up the others
  }
}

/** Opens when this many callers have arrived. */
class Gate {
  readonly #opened: Promise<void>;
  #open: () => void = () => {};
  #missing: number;

  constructor(count: number) {
    this.#missing = count;
    this.#opened = new Promise((resolve) => (this.#open = resolve));
  }

  arrive(): Promise<void> {
    this.#missing -= 1;
    if (this.#missing <= 0) this.#open();
    return this.#opened;
  }

  open(): void {
    this.#open();
  }
}

function doesNotFence({ url }: Store, what: string): TerminalError {
  return new TerminalError('StoreDoesNotFence', `${url}: ${what}`, {
    where: url,
    hint: 'Use a local folder, or an object store with atomic conditional writes (If-None-Match: *); docs/do/store.md names versions that have them',
  });
}
