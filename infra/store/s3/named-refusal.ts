/**
 * The reason of a refused HEAD. Its reply has no body, so a token that has expired, a clock that is wrong and a key
 * that is not allowed all read `400 Unknown` or `403`. The same request as a GET names the reason.
 */
import { GetObjectCommand, HeadBucketCommand, HeadObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import type { HeadObjectCommandOutput } from '@aws-sdk/client-s3';
import type { S3Bucket } from './bucket.ts';
import { BrokenTransfer, describeFailure, isAbsent, isTransient, statusOf } from './failures.ts';

/** Asks for an object's size and metadata. Throws the reason that the server gives for a refusal. */
export function headObject(bucket: S3Bucket, key: string): Promise<HeadObjectCommandOutput> {
  return named(
    () => bucket.client.send(new HeadObjectCommand(bucket.at(key))),
    async () => {
      const { Body } = await bucket.client.send(new GetObjectCommand({ ...bucket.at(key), Range: 'bytes=0-0' }));
      await Body?.transformToByteArray();
    },
  );
}

/** Asks whether the bucket is there. Throws the reason that the server gives for a refusal. */
export async function headBucket({ client, location: { bucket: Bucket, prefix } }: S3Bucket): Promise<void> {
  await named(
    () => client.send(new HeadBucketCommand({ Bucket })),
    () => client.send(new ListObjectsV2Command({ Bucket, Prefix: prefix, MaxKeys: 1 })),
  );
}

async function named<T>(head: () => Promise<T>, get: () => Promise<unknown>): Promise<T> {
  try {
    return await head();
  } catch (error) {
    const status = statusOf(error);
    if (isAbsent(error) || isTransient(error) || status < 400 || status >= 500) throw error;
    await get().catch((reason: unknown) => {
      // A missing or empty object is an answer, too.
      if (!isAbsent(reason) && statusOf(reason) !== 416) throw reason;
    });
    // The refusal is over, or only HEAD is refused: both may pass with the next attempt.
    throw new BrokenTransfer(`a HEAD was refused (${describeFailure(error)}), the same GET was answered`);
  }
}
