/** Facts of a run by digest: written once, checked on every read. */
import { canonicalJson } from '../../core/canonical.ts';
import { RetryableError, TerminalError } from '../../core/errors.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { sha256 } from './digest.ts';

export async function putBlob(store: Store, runId: RunId, bytes: Uint8Array): Promise<Digest> {
  const digest = sha256(bytes);
  const key = keys.blob(runId, digest);
  if ((await store.head(key)) !== bytes.byteLength) await store.put(key, bytes);
  return digest;
}

/** Throws TerminalError `DamagedBlob` when the bytes do not match their name, RetryableError when absent. */
export function getBlob(store: Store, runId: RunId, digest: Digest): Promise<Uint8Array> {
  return getByDigest(store, keys.blob(runId, digest), digest);
}

/** A scorer's module that a schedule keeps for the runs that it will start. */
export async function putScheduleModule(store: Store, name: string, bytes: Uint8Array): Promise<void> {
  await store.put(keys.scheduleBlob(name, sha256(bytes)), bytes);
}

export function getScheduleModule(store: Store, name: string, digest: Digest): Promise<Uint8Array> {
  return getByDigest(store, keys.scheduleBlob(name, digest), digest);
}

async function getByDigest(store: Store, key: string, digest: Digest): Promise<Uint8Array> {
  const bytes = await store.get(key);
  if (bytes === undefined) throw new RetryableError('MissingBlob', `${key}: expected an object, found nothing`, { where: key });
  if (sha256(bytes) !== digest) {
    throw new TerminalError('DamagedBlob', `${key}: its bytes do not match its name`, {
      where: key,
      hint: 'petrel ckpt verify lists what is damaged; restore the object from a copy of the store',
    });
  }
  return bytes;
}

export async function putJsonBlob(store: Store, runId: RunId, value: unknown): Promise<Digest> {
  return putBlob(store, runId, new TextEncoder().encode(canonicalJson(value)));
}

export async function getJsonBlob(store: Store, runId: RunId, digest: Digest): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await getBlob(store, runId, digest)));
}
