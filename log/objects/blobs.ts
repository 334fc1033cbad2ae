/** Blobs of a run, named by digest: written once, and checked on every read. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/canonical.ts';
import { RetryableError } from '../../core/errors.ts';
import { damage } from '../../core/records/damage.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { checked, digestOfPieces, sha256 } from './digest.ts';

/** A blob of so many bytes is sent without a question: asking whether it is there takes as long as sending it. */
const askedFrom = 2 ** 20;

export async function putBlob(store: Store, runId: RunId, bytes: Uint8Array): Promise<Digest> {
  const digest = sha256(bytes);
  const key = keys.blob(runId, digest);
  const isAsked = bytes.byteLength >= askedFrom;
  if (!isAsked || !(await isIntact(store, key, bytes.byteLength, digest))) await store.put(key, bytes);
  return digest;
}

/**
 * Stores a large blob that is in pieces, without a second copy of it. The caller must not change the pieces until this
 * returns. The event loop gets turns while they are hashed.
 */
export async function putLargeBlob(store: Store, runId: RunId, pieces: readonly Uint8Array[]): Promise<Digest> {
  const digest = await digestOfPieces(pieces);
  const key = keys.blob(runId, digest);
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  if (!(await isIntact(store, key, bytes, digest))) await store.put(key, oneByOne(pieces));
  return digest;
}

/**
 * Stores a blob of so many bytes that need not be in memory at once: `read` is called to name them, and again to send
 * them. Throws RetryableError `BytesChanged` when it did not give the same ones.
 */
export async function putStreamedBlob(
  store: Store,
  runId: RunId,
  bytes: number,
  read: () => AsyncIterable<Uint8Array>,
): Promise<Digest> {
  const hash = createHash('sha256');
  for await (const piece of read()) hash.update(piece);
  const digest = hash.digest('hex');
  const key = keys.blob(runId, digest);
  const changed = () => new RetryableError('BytesChanged', `BytesChanged: ${key} had other bytes when it was sent`);
  if (!(await isIntact(store, key, bytes, digest))) await store.put(key, checked(read(), digest, changed));
  return digest;
}

async function* oneByOne(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

/** An existing object is read, and made durable if its bytes are right. A damaged one is written again. */
export async function isIntact(store: Store, key: string, bytes: number, digest: Digest): Promise<boolean> {
  if ((await store.head(key)) !== bytes) return false;
  const hash = createHash('sha256');
  for await (const piece of (await store.stream(key)) ?? []) hash.update(piece);
  if (hash.digest('hex') !== digest) return false;
  await store.settle();
  return true;
}

/** Throws PauseError `DamagedBlob` when the bytes do not match the name, `MissingBlob` when the object is missing. */
export function getBlob(store: Store, runId: RunId, digest: Digest): Promise<Uint8Array> {
  return getByDigest(store, keys.blob(runId, digest), digest);
}

/** Throws PauseError `MissingBlob` for the first one that is not in the store. Their bytes are not read. */
export async function requireBlobs(store: Store, runId: RunId, digests: Iterable<Digest>): Promise<void> {
  for (const digest of digests) {
    const key = keys.blob(runId, digest);
    if ((await store.head(key)) === undefined) throw missing(key);
  }
}

/** A module of the user's own, such as a scorer, that a schedule keeps for the runs that it will start. */
export async function putScheduleModule(store: Store, name: string, bytes: Uint8Array): Promise<void> {
  await store.put(keys.scheduleBlob(name, sha256(bytes)), bytes);
}

export function getScheduleModule(store: Store, name: string, digest: Digest): Promise<Uint8Array> {
  return getByDigest(store, keys.scheduleBlob(name, digest), digest);
}

async function getByDigest(store: Store, key: string, digest: Digest): Promise<Uint8Array> {
  const bytes = await store.get(key);
  if (bytes === undefined) throw missing(key);
  if (sha256(bytes) !== digest) throw damaged(key);
  return bytes;
}

/**
 * Reads a large blob piece by piece. After the last piece it throws PauseError `DamagedBlob` when the bytes do not
 * match the name, so the caller must not use the pieces before the stream has ended without an error.
 */
export async function* streamBlob(store: Store, runId: RunId, digest: Digest): AsyncGenerator<Uint8Array> {
  const key = keys.blob(runId, digest);
  const stream = await store.stream(key);
  if (stream === undefined) throw missing(key);
  yield* checked(stream, digest, () => damaged(key));
}

const missing = (key: string) => damage('MissingBlob', key, 'expected an object, found nothing');
const damaged = (key: string) => damage('DamagedBlob', key, 'its bytes do not match its name');

export async function putJsonBlob(store: Store, runId: RunId, value: unknown): Promise<Digest> {
  return putBlob(store, runId, new TextEncoder().encode(canonicalJson(value)));
}

export async function getJsonBlob(store: Store, runId: RunId, digest: Digest): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await getBlob(store, runId, digest)));
}
