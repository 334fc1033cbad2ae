/** Reads objects: a small one in one request with the server's checksum, a large one in parallel ranges. */
import { GetObjectCommand } from '@aws-sdk/client-s3';
import { RetryableError } from '../../../core/errors.ts';
import type { S3Bucket } from './bucket.ts';
import { BrokenTransfer, isAbsent, statusOf } from './failures.ts';
import { headObject } from './named-refusal.ts';
import { inOrder } from '../../../core/parallel.ts';

/** Bytes of a range, and of the largest object that is read in one request. */
export const rangeBytes = 8 * 1024 * 1024;
/** Ranges in flight at once: this bounds the memory of a stream and is enough to fill a fast connection. */
const rangesAtOnce = 6;

/** Size in bytes; undefined when absent. */
export async function sizeOf(bucket: S3Bucket, key: string): Promise<number | undefined> {
  return bucket.insist(`head ${key}`, async () => {
    try {
      return (await headObject(bucket.client, bucket.at(key))).ContentLength ?? 0;
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  });
}

/** Reads the whole object into one buffer, in parallel ranges. */
export async function readWhole(bucket: S3Bucket, key: string): Promise<Uint8Array | undefined> {
  const first = await readFirst(bucket, key);
  if (first === undefined || first.bytes.length === first.size) return first?.bytes;
  const whole = new Uint8Array(first.size);
  whole.set(first.bytes);
  const read = (range: Range) => readInto(bucket, key, range, whole.subarray(range.start, range.end));
  for await (const _ of inOrder(rangesAfter(first), rangesAtOnce, read));
  return whole;
}

/** Reads the object in order, a few ranges ahead of the consumer. */
export async function readStream(bucket: S3Bucket, key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const first = await readFirst(bucket, key);
  return first && restOf(bucket, key, first);
}

async function* restOf(bucket: S3Bucket, key: string, first: FirstPart): AsyncGenerator<Uint8Array> {
  yield first.bytes;
  yield* inOrder(rangesAfter(first), rangesAtOnce, (range) =>
    readInto(bucket, key, range, new Uint8Array(range.end - range.start)),
  );
}

/** Bytes [start, end), fewer when the object is shorter. */
export async function readRange(
  bucket: S3Bucket,
  key: string,
  [start, end]: readonly [number, number],
): Promise<Uint8Array | undefined> {
  const size = await sizeOf(bucket, key);
  if (size === undefined) return undefined;
  const until = Math.min(end, size);
  return until <= start
    ? new Uint8Array()
    : readInto(bucket, key, { start, end: until }, new Uint8Array(until - start));
}

interface FirstPart {
  readonly size: number;
  readonly etag: string | undefined;
  /** All of a small object, or the first range of a large one. */
  readonly bytes: Uint8Array;
}

interface Range {
  readonly start: number;
  readonly end: number;
  /** Throws when the ranges do not come from the same version of the object. */
  readonly etag?: string | undefined;
}

/**
 * Requests the whole object, because most objects are small. For a large one it closes the connection after the first
 * range.
 */
async function readFirst(bucket: S3Bucket, key: string): Promise<FirstPart | undefined> {
  return bucket.insist(`get ${key}`, async () => {
    const enough = new AbortController();
    try {
      const {
        Body,
        ContentLength = 0,
        ETag,
      } = await bucket.client.send(new GetObjectCommand({ ...bucket.at(key), ChecksumMode: 'ENABLED' }), {
        abortSignal: enough.signal,
      });
      const bytes = new Uint8Array(Math.min(ContentLength, rangeBytes));
      await fill(bytes, Body as AsyncIterable<Uint8Array>, ContentLength > bytes.length);
      return { size: ContentLength, etag: ETag, bytes };
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    } finally {
      enough.abort();
    }
  });
}

function* rangesAfter({ size, etag, bytes }: FirstPart): Generator<Range> {
  for (let start = bytes.length; start < size; start += rangeBytes)
    yield { start, end: Math.min(start + rangeBytes, size), etag };
}

/** Fills `target` with the range. A broken transfer continues where it stopped. */
async function readInto(
  bucket: S3Bucket,
  key: string,
  { start, end, etag }: Range,
  target: Uint8Array,
): Promise<Uint8Array> {
  let got = 0;
  await bucket.insist(`get ${key}, bytes ${start} to ${end}`, async () => {
    try {
      const { Body } = await bucket.client.send(
        new GetObjectCommand({
          ...bucket.at(key),
          Range: `bytes=${start + got}-${end - 1}`,
          ...(etag === undefined ? {} : { IfMatch: etag }),
        }),
      );
      await fill(target.subarray(got), Body as AsyncIterable<Uint8Array>, false, (count) => (got += count));
    } catch (error) {
      if (statusOf(error) === 412 || isAbsent(error)) throw changed(bucket, key, error);
      throw error;
    }
  });
  return target;
}

/**
 * Copies a body into `target`. `more`: the body is longer than needed, and the rest is ignored. Throws BrokenTransfer
 * when there is too little or too much.
 */
async function fill(
  target: Uint8Array,
  body: AsyncIterable<Uint8Array>,
  more: boolean,
  onBytes?: (count: number) => void,
): Promise<void> {
  let at = 0;
  for await (const chunk of body) {
    const wanted = chunk.subarray(0, target.length - at);
    target.set(wanted, at);
    at += wanted.length;
    onBytes?.(wanted.length);
    if (more && at === target.length) return;
    if (wanted.length < chunk.length) throw new BrokenTransfer(`got more than the expected ${target.length} bytes`);
  }
  if (at < target.length) throw new BrokenTransfer(`the reply ended after ${at} of ${target.length} bytes`);
}

function changed(bucket: S3Bucket, key: string, cause: unknown): RetryableError {
  return new RetryableError('ObjectChanged', `${key}: it was removed or replaced while it was read`, {
    where: bucket.url,
    cause,
  });
}
