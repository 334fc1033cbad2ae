/** A bucket as object store. `create` is a PUT with If-None-Match, which succeeds only when the key is free. */
import type { Store } from '../../../core/ports/store.ts';
import { S3Bucket } from './bucket.ts';
import { sharedS3 } from './client.ts';
import type { S3Connection } from './client.ts';
import { createObject } from './create.ts';
import { listChildren, listKeys, removeAll, removeObject } from './listing.ts';
import { parseS3Url } from './location.ts';
import { readRange, readStream, readWhole, sizeOf } from './read.ts';
import { putObject } from './write.ts';
import { abortUnfinished } from './unfinished.ts';

/**
 * Opens `s3://bucket/prefix`, by default with the process's shared client. Throws InvalidInputError when bucket or
 * credentials are missing, TerminalError when access is denied, RetryableError when no server answers. With `serving`,
 * a missing bucket, missing credentials or denied access is an UnfitError, now and later.
 */
export async function openS3Store(url: string, connection?: S3Connection, serving = false): Promise<Store> {
  const location = parseS3Url(url);
  const bucket = new S3Bucket(connection ?? (await sharedS3()), location, serving);
  await bucket.check();
  return new S3Store(bucket);
}

class S3Store implements Store {
  readonly url: string;
  readonly place: string;
  readonly #bucket: S3Bucket;

  constructor(bucket: S3Bucket) {
    this.#bucket = bucket;
    this.url = bucket.url;
    this.place = `${bucket.url} at ${bucket.endpoint ?? 'AWS'}`;
  }

  create(key: string, bytes: Uint8Array, hold?: () => Promise<void>): Promise<'created' | 'exists'> {
    return createObject(this.#bucket, key, bytes, hold);
  }

  put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    return putObject(this.#bucket, key, bytes);
  }

  get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined> {
    return range === undefined ? readWhole(this.#bucket, key) : readRange(this.#bucket, key, range);
  }

  stream(key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    return readStream(this.#bucket, key);
  }

  head(key: string): Promise<number | undefined> {
    return sizeOf(this.#bucket, key);
  }

  /** S3 lists and returns only durable objects. */
  async settle(): Promise<void> {}

  list(prefix: string): Promise<string[]> {
    return listKeys(this.#bucket, prefix);
  }

  children(prefix: string): Promise<string[]> {
    return listChildren(this.#bucket, prefix);
  }

  remove(key: string, only: (key: string) => boolean = () => true): Promise<void> {
    return key.endsWith('/') ? removeAll(this.#bucket, key, only) : removeObject(this.#bucket, key);
  }

  removeLeftovers(before: Date): Promise<number> {
    return abortUnfinished(this.#bucket, before);
  }

  localPath(): undefined {
    return undefined;
  }
}
