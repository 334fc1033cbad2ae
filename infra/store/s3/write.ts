/**
 * Writes objects: a small one in one request, a large one in parallel parts. Every part has a checksum that the server
 * verifies.
 */
import { randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { CompletedPart } from '@aws-sdk/client-s3';
import type { S3Bucket } from './bucket.ts';
import { writerName, readWriterTag } from './create.ts';
import { nameOf } from './failures.ts';
import { eachOf } from '../../../core/parallel.ts';

/** Bytes of a part. For a stream, memory holds as many parts as are in flight. */
const partBytes = 8 * 1024 * 1024;
const partsAtOnce = 6;
/** S3 accepts 10,000 parts, so later parts of a long stream are larger. */
const partsOfOneSize = 2_000;

export async function putObject(
  bucket: S3Bucket,
  key: string,
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
): Promise<void> {
  const parts = bytes instanceof Uint8Array ? partsOf([bytes]) : partsOf(bytes);
  const first = (await parts.next()).value ?? new Uint8Array();
  const second = first.byteLength < partBytes ? undefined : (await parts.next()).value;
  if (second === undefined) return putWhole(bucket, key, first);
  return new Upload(bucket, key).run(chained([first, second], parts));
}

async function putWhole(bucket: S3Bucket, key: string, bytes: Uint8Array): Promise<void> {
  await bucket.insist(`put ${key}`, () =>
    bucket.client.send(new PutObjectCommand({ ...bucket.at(key), Body: bytes, ContentLength: bytes.byteLength })),
  );
}

/** One multipart upload. The object appears with the last request; a failed upload is aborted. */
class Upload {
  readonly #bucket: S3Bucket;
  readonly #key: string;
  readonly #writer = randomUUID();
  readonly #parts: CompletedPart[] = [];

  constructor(bucket: S3Bucket, key: string) {
    this.#bucket = bucket;
    this.#key = key;
  }

  async run(parts: AsyncIterable<Uint8Array>): Promise<void> {
    const { UploadId } = await this.#bucket.insist(`begin the upload of ${this.#key}`, () =>
      this.#bucket.client.send(
        new CreateMultipartUploadCommand({
          ...this.#bucket.at(this.#key),
          ChecksumAlgorithm: 'CRC32',
          Metadata: { [writerName]: this.#writer },
        }),
      ),
    );
    const upload = { ...this.#bucket.at(this.#key), UploadId };
    try {
      let number = 0;
      await eachOf(parts, partsAtOnce, (bytes) => this.#send(upload, ++number, bytes));
      await this.#complete(upload);
    } catch (error) {
      await this.#abort(upload, error);
      throw error;
    }
  }

  async #send(upload: UploadOf, number: number, bytes: Uint8Array): Promise<void> {
    const { ETag, ChecksumCRC32 } = await this.#bucket.insist(`put part ${number} of ${this.#key}`, () =>
      this.#bucket.client.send(
        new UploadPartCommand({
          ...upload,
          PartNumber: number,
          Body: bytes,
          ContentLength: bytes.byteLength,
          ChecksumAlgorithm: 'CRC32',
        }),
      ),
    );
    this.#parts[number - 1] = { PartNumber: number, ETag, ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }) };
  }

  /**
   * Completes an upload. When the reply to an earlier attempt was lost, the upload is already completed: the object
   * exists and has this writer's tag.
   */
  async #complete(upload: UploadOf): Promise<void> {
    await this.#bucket.insist(`end the upload of ${this.#key}`, async () => {
      try {
        await this.#bucket.client.send(
          new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: this.#parts } }),
        );
      } catch (error) {
        if (nameOf(error) !== 'NoSuchUpload' || (await readWriterTag(this.#bucket, this.#key)) !== this.#writer)
          throw error;
      }
    });
  }

  /** All parts have ended, so none arrives after the abort. The caller gets the first failure. */
  async #abort(upload: UploadOf, reason: unknown): Promise<void> {
    await this.#bucket
      .insist(`abort the upload of ${this.#key}`, () =>
        this.#bucket.client.send(new AbortMultipartUploadCommand(upload)),
      )
      .catch((error: unknown) => {
        if (reason instanceof Error && error instanceof Error)
          reason.message += ` (its parts stay until the bucket's rule for unfinished uploads removes them: ${error.message})`;
      });
  }
}

interface UploadOf {
  readonly Bucket: string;
  readonly Key: string;
  readonly UploadId: string | undefined;
}

/** Cuts and joins pieces into parts of full size, except the last. Large pieces are not copied. */
async function* partsOf(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, undefined> {
  let made = 0;
  let open: Uint8Array[] = [];
  let held = 0;
  for await (const piece of pieces) {
    for (let at = 0; at < piece.byteLength; ) {
      const full = partBytes * 2 ** Math.floor(made / partsOfOneSize);
      const taken = piece.subarray(at, at + full - held);
      at += taken.byteLength;
      held += taken.byteLength;
      open.push(taken);
      if (held < full) continue;
      yield joined(open);
      made += 1;
      open = [];
      held = 0;
    }
  }
  if (held > 0) yield joined(open);
  return undefined;
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
}

async function* chained(
  first: readonly Uint8Array[],
  rest: AsyncGenerator<Uint8Array, undefined>,
): AsyncGenerator<Uint8Array> {
  yield* first;
  yield* rest;
}
