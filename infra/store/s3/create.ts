/** The conditional create: every decision is made by this one operation. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import type { S3Bucket } from './bucket.ts';
import { isAbsent, statusOf } from './failures.ts';
import { headObject } from './named-refusal.ts';

/** Metadata of an object with the tag of the call that created it. */
export const writerName = 'petrel-writer';

/**
 * A single PUT that succeeds only if the key is free. The reply may be lost, or a proxy may send the request twice;
 * then a later attempt finds the object of an earlier attempt. So each call tags its object, and a refusal because of
 * an object with this call's tag is a success.
 */
export async function createObject(
  bucket: S3Bucket,
  key: string,
  bytes: Uint8Array,
  hold?: () => Promise<void>,
): Promise<'created' | 'exists'> {
  const writer = randomUUID();
  return bucket.insist(`create ${key}`, async () => {
    const command = new PutObjectCommand({
      ...bucket.at(key),
      Body: bytes,
      ContentLength: bytes.byteLength,
      IfNoneMatch: '*',
      Metadata: { [writerName]: writer },
    });
    if (hold !== undefined) holdLastByte(command, bytes, hold);
    try {
      await bucket.client.send(command);
      return 'created';
    } catch (error) {
      if (statusOf(error) !== 412) throw error;
      return (await readWriterTag(bucket, key)) === writer ? 'created' : 'exists';
    }
  });
}

/** The tag of the call that created the object; undefined when the object is missing or has no tag. */
export async function readWriterTag(bucket: S3Bucket, key: string): Promise<string | undefined> {
  return bucket.insist(`head ${key}`, async () => {
    try {
      return (await headObject(bucket.client, bucket.at(key))).Metadata?.[writerName];
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  });
}

/** Sends the signed request except its last byte, which waits for `hold`. */
function holdLastByte(command: PutObjectCommand, bytes: Uint8Array, hold: () => Promise<void>): void {
  command.middlewareStack.add(
    (next) => async (args) => {
      (args.request as { body: unknown }).body = Readable.from(held(bytes, hold));
      return next(args);
    },
    { step: 'deserialize', name: 'holdLastByte', priority: 'low' },
  );
}

async function* held(bytes: Uint8Array, hold: () => Promise<void>): AsyncGenerator<Uint8Array> {
  yield bytes.subarray(0, -1);
  await hold();
  yield bytes.subarray(-1);
}
