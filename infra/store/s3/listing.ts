/** Lists page by page, and removes the objects under a prefix. */
import { DeleteObjectCommand, DeleteObjectsCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import { RetryableError } from '../../../core/errors.ts';
import type { S3Bucket } from './bucket.ts';

interface Page {
  /** Full keys in the bucket. */
  readonly names: readonly string[];
  /** Common prefixes, with their ending "/". */
  readonly folders: readonly string[];
}

async function* pages(bucket: S3Bucket, prefix: string, delimiter?: '/'): AsyncGenerator<Page> {
  const { Bucket, Key: Prefix } = bucket.at(prefix);
  let ContinuationToken: string | undefined;
  do {
    const page = await bucket.insist(`list ${prefix}`, () =>
      bucket.client.send(new ListObjectsV2Command({ Bucket, Prefix, Delimiter: delimiter, ContinuationToken })),
    );
    // Some servers show former folders as empty objects.
    const names = (page.Contents ?? []).map(({ Key = '' }) => Key).filter((name) => name !== '' && !name.endsWith('/'));
    yield { names, folders: (page.CommonPrefixes ?? []).map(({ Prefix: folder = '' }) => folder) };
    ContinuationToken = page.IsTruncated === true ? page.NextContinuationToken : undefined;
  } while (ContinuationToken !== undefined);
}

/** Keys under a prefix, ascending. */
export async function listKeys(bucket: S3Bucket, prefix: string): Promise<string[]> {
  const skipped = bucket.location.prefix.length;
  const keys: string[] = [];
  for await (const { names } of pages(bucket, prefix)) for (const name of names) keys.push(name.slice(skipped));
  return keys.sort();
}

/** Names directly under a prefix that ends in "/". */
export async function listChildren(bucket: S3Bucket, prefix: string): Promise<string[]> {
  const skipped = bucket.at(prefix).Key.length;
  const children: string[] = [];
  for await (const { names, folders } of pages(bucket, prefix, '/')) {
    for (const name of [...names, ...folders]) if (name.length > skipped) children.push(name.slice(skipped));
  }
  return [...new Set(children)].sort();
}

export async function removeObject(bucket: S3Bucket, key: string): Promise<void> {
  await bucket.insist(`remove ${key}`, () => bucket.client.send(new DeleteObjectCommand(bucket.at(key))));
}

/** Removes the objects under a prefix that ends in "/" whose keys `only` accepts, one page at a time. */
export async function removeAll(bucket: S3Bucket, prefix: string, only: (key: string) => boolean): Promise<void> {
  const skipped = bucket.location.prefix.length;
  for await (const page of pages(bucket, prefix)) {
    const names = page.names.filter((name) => only(name.slice(skipped)));
    if (names.length === 0) continue;
    await bucket.insist(`remove ${names.length} objects of ${prefix}`, async () => {
      const Objects = names.map((Key) => ({ Key }));
      const { Errors = [] } = await bucket.client.send(
        new DeleteObjectsCommand({ Bucket: bucket.location.bucket, Delete: { Objects, Quiet: true } }),
      );
      // NoSuchKey: removed by an attempt whose reply was lost
      const stayed = Errors.filter(({ Code }) => Code !== 'NoSuchKey');
      if (stayed.length > 0) throw refused(bucket, prefix, stayed[0]?.Code);
    });
  }
}

function refused(bucket: S3Bucket, prefix: string, code = 'unknown'): RetryableError {
  return new RetryableError('StoreUnavailable', `remove ${prefix}: some objects were not removed: ${code}`, {
    where: bucket.url,
    hint: 'Remove it again',
  });
}
