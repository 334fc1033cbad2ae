/**
 * The thread that hashes checkpoints and writes them to the store, one after the other, because two at once would only
 * share the disk.
 */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { at } from '../../../core/at.ts';
import { thrownToJson } from '../../../core/errors.ts';
import type { StatePart } from '../../../core/parameters.ts';
import { mapComponents } from '../../../core/records/components.ts';
import { bytesOfDtype } from '../../../core/records/publications.ts';
import type { CheckpointOutput } from '../../../core/wire/jobs/index.ts';
import { readShared } from '../../../infra/shared-memory.ts';
import { checkedByMainThread, storesByUrl } from '../../../infra/store/open-stores.ts';
import { watchedStore } from '../../../infra/store/watched.ts';
import { freshRoom, valuesIn } from './checkpoint-copies.ts';
import type { Room } from './checkpoint-copies.ts';
import { saveCheckpoint, savePartOfCheckpoint } from './checkpoint.ts';
import type { PartToSave, Snapshot } from './checkpoint.ts';
import type {
  CopiedComponent,
  FromWriter,
  SharedCopy,
  ToWriter,
  WriteJob,
  WriterThreadData,
} from './checkpoint-writer.ts';

const port = parentPort;
if (port === null) throw new Error('workers/engine/state/checkpoint-writer-thread.ts runs as a worker thread');
/** Training goes first: on Linux this sets the priority of the calling thread only. */
if (process.platform === 'linux') setPriority(19);
const stores = storesByUrl(checkedByMainThread);
const ticks = new Int32Array((workerData as WriterThreadData).ticks);
const tick = () => void Atomics.add(ticks, 0, 1);
let turn: Promise<void> = Promise.resolve();

port.on('message', (message: ToWriter) => {
  if (message.type === 'prepare') return prepare(message.sizes, message.to);
  turn = turn.then(() => (message.type === 'end' ? port.close() : write(message)));
});

/** The first touch of a page is the expensive part, so this thread does it instead of the copy. */
function prepare(sizes: readonly number[], to: MessagePort): void {
  const room = freshRoom(sizes);
  // A Uint8Array ends at 4 GiB. Every type of values has an even number of bytes.
  for (const memory of room.map((buffer) => new Uint16Array(buffer))) {
    for (let page = 0; page < memory.length; page += 2048) memory[page] = 0;
  }
  to.postMessage(room, [...room]);
}

async function write({ id, place: { store, isPart, ...named }, stateDigest, components }: WriteJob): Promise<void> {
  const started = performance.now();
  try {
    const place = { store: watchedStore(await stores(store), tick), ...named };
    const snapshots = mapComponents(components, snapshotOf);
    const saved: CheckpointOutput = isPart
      ? { shards: await savePartOfCheckpoint(place, snapshots) }
      : { manifest: await saveCheckpoint(place, stateDigest, snapshots) };
    const rooms: Record<string, Room> = {};
    for (const [name, { copy }] of Object.entries(components)) if ('room' in copy) rooms[name] = copy.room;
    port?.postMessage(
      { type: 'written', id, saved, ms: performance.now() - started, rooms } satisfies FromWriter,
      Object.values(rooms).flatMap((room) => [...room]),
    );
  } catch (error) {
    port?.postMessage({ type: 'failed', id, thrown: thrownToJson(error) } satisfies FromWriter);
  }
}

function snapshotOf({ copy, parts, ...rest }: CopiedComponent): Snapshot {
  const read = 'room' in copy ? fromRoom(copy.room, parts) : fromShared(copy.shared, parts);
  return { parts: parts.map((part, i) => ({ ...part, read: read(i) })), ...rest };
}

type ReadPart = (index: number) => PartToSave['read'];

const fromRoom =
  (room: Room, parts: readonly StatePart[]): ReadPart =>
  (i) =>
  async (start, end) =>
    valuesIn(at(parts, i), at(room, i)).subarray(start, end);

/** Every shard is read into the same memory. */
function fromShared({ fd, starts }: SharedCopy, parts: readonly StatePart[]): ReadPart {
  let memory = new ArrayBuffer(0);
  return (i) => async (start, end) => {
    const { dtype } = at(parts, i);
    const width = bytesOfDtype[dtype];
    const bytes = width * (end - start);
    if (memory.byteLength < bytes) memory = new ArrayBuffer(bytes);
    const values = valuesIn({ dtype }, memory).subarray(0, end - start);
    readShared(fd, at(starts, i) + width * start, values);
    return values;
  };
}
