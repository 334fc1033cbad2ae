/** `s3://bucket/prefix`, and where a key of the store lies in the bucket. */
import { InvalidInputError } from '../../../core/errors.ts';
import { checkKey } from '../key.ts';

export interface S3Location {
  readonly bucket: string;
  /** Empty, or ends in "/". */
  readonly prefix: string;
}

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** Throws InvalidInputError for what no bucket or prefix can be. */
export function parseS3Url(url: string): S3Location {
  const [, bucket = '', rest = ''] = /^s3:\/\/([^/]*)(?:\/(.*))?$/.exec(url) ?? [];
  const names = rest.split('/').filter((name) => name !== '');
  if (!bucketName.test(bucket) || names.some((name) => name === '.' || name === '..')) {
    throw new InvalidInputError(`store: ${url}: expected s3://bucket/prefix`, {
      hint: 'A bucket has 3 to 63 small letters, digits, dots and dashes; the prefix may be empty',
    });
  }
  return { bucket, prefix: names.map((name) => `${name}/`).join('') };
}

/** The one spelling of a location, by which a store is known. */
export function showS3Url({ bucket, prefix }: S3Location): string {
  return `s3://${bucket}/${prefix}`.replace(/\/$/, '');
}

/** The object's full key in the bucket. */
export function objectName({ prefix }: S3Location, key: string): string {
  return prefix + checkKey(key);
}
