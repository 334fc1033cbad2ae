/** Multipart uploads that their writers never completed. They are invisible and still cost money. */
import { AbortMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3';
import { largeFolders } from '../../../core/records/keys.ts';
import type { S3Bucket } from './bucket.ts';

/**
 * Aborts this store's uploads that started before the given time. Returns how many. Uploads of other users of the
 * bucket stay.
 */
export async function abortUnfinished(bucket: S3Bucket, before: Date): Promise<number> {
  const { Bucket, Key: Prefix } = bucket.at('');
  let aborted = 0;
  let place: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {};
  for (;;) {
    const page = await bucket.insist('list unfinished uploads', () =>
      bucket.client.send(new ListMultipartUploadsCommand({ Bucket, Prefix, ...place })),
    );
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      if (
        Initiated === undefined ||
        Initiated >= before ||
        !largeFolders.some((folder) => Key?.startsWith(Prefix + folder))
      )
        continue;
      await bucket.insist(`abort the upload of ${Key}`, () =>
        bucket.client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })),
      );
      aborted += 1;
    }
    if (page.IsTruncated !== true) return aborted;
    place = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
}
