/**
 * How fast the stores are: large objects in MiB/s compared with `cp` and with a single stream, and records per second.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import type { Store } from '../../core/ports/store.ts';
import { openFolderStore } from '../../infra/store/folder.ts';
import { S3Bucket } from '../../infra/store/s3/bucket.ts';
import { sharedS3 } from '../../infra/store/s3/client.ts';
import { parseS3Url } from '../../infra/store/s3/location.ts';
import { openS3Store } from '../../infra/store/s3/store.ts';
import type { BenchSettings, Measurement } from '../measurement.ts';

const objectBytes = 256 * 2 ** 20;
const records = 512;
/** Samples, scores and tensors of a small batch. */
const blobBytes = 64 * 2 ** 10;
const blobs = 64;
/** Creates in parallel: a busy control process and its workers. */
const atOnce = 16;

export const folderStore: Measurement = {
  name: 'store.folder',
  rows: [
    { name: 'store.folder.put', unit: 'MiB/s' },
    { name: 'store.folder.put.unsynced', unit: 'MiB/s' },
    { name: 'store.folder.blob', unit: 'ms' },
    { name: 'store.folder.blob.unsynced', unit: 'ms' },
    { name: 'store.folder.get', unit: 'MiB/s' },
    { name: 'store.folder.cp', unit: 'MiB/s' },
    { name: 'store.folder.creates', unit: 'records/s' },
  ],
  turns: 5,
  compare: {
    'store.folder.put': 'store.folder.put.unsynced',
    'store.folder.blob': 'store.folder.blob.unsynced',
    'store.folder.get': 'store.folder.cp',
  },
  async open({ quick }) {
    const folder = await mkdtemp(join(tmpdir(), 'petrel-bench-store-'));
    const store = await openFolderStore(join(folder, 'store'));
    const bytes = objectOf(quick);
    writeFileSync(join(folder, 'source'), bytes);
    return {
      about: `a folder, ${bytes.length >> 20} MiB`,
      turn: async () => ({
        ...(await transfers('store.folder', store, bytes)),
        'store.folder.put.unsynced': await rate(bytes, () => writeUnsynced(join(folder, 'unsynced'), bytes)),
        'store.folder.blob': await millisecondsEach((n, blob) => store.put(`turn/blobs/${n}`, blob)),
        'store.folder.blob.unsynced': await millisecondsEach((n, blob) => writeUnsynced(join(folder, `${n}`), blob)),
        'store.folder.cp': await rate(bytes, () =>
          promisify(execFile)('cp', [join(folder, 'source'), join(folder, 'copy')]),
        ),
        'store.folder.creates': await creates(store, quick),
      }),
      close: async () => rmSync(folder, { recursive: true }),
    };
  },
};

/** `url`: a prefix in a bucket, whose server and credentials the SDK finds by itself. */
export function bucketStore(url: string): Measurement {
  return {
    name: 'store.s3',
    rows: [
      { name: 'store.s3.put', unit: 'MiB/s' },
      { name: 'store.s3.get', unit: 'MiB/s' },
      { name: 'store.s3.put.single', unit: 'MiB/s' },
      { name: 'store.s3.get.single', unit: 'MiB/s' },
      { name: 'store.s3.creates', unit: 'records/s' },
    ],
    turns: 5,
    compare: { 'store.s3.put': 'store.s3.put.single', 'store.s3.get': 'store.s3.get.single' },
    async open({ quick }: BenchSettings) {
      const place = `${url}/bench-${randomBytes(4).toString('hex')}`;
      const store = await openS3Store(place);
      const bucket = new S3Bucket(await sharedS3(), parseS3Url(place));
      const bytes = objectOf(quick);
      return {
        about: `${url}, ${bytes.length >> 20} MiB`,
        turn: async () => ({
          ...(await transfers('store.s3', store, bytes)),
          'store.s3.put.single': await rate(bytes, () =>
            bucket.client.send(new PutObjectCommand({ ...bucket.at('single'), Body: bytes })),
          ),
          'store.s3.get.single': await rate(bytes, () => readSingle(bucket, bytes.length)),
          'store.s3.creates': await creates(store, quick),
        }),
        close: () => Promise.all([store.remove('turn/'), store.remove('single')]).then(() => {}),
      };
    },
  };
}

async function transfers(name: string, store: Store, bytes: Uint8Array): Promise<Record<string, number>> {
  const put = await rate(bytes, () => store.put('turn/object', bytes));
  const get = await rate(bytes, () => store.get('turn/object'));
  return { [`${name}.put`]: put, [`${name}.get`]: get };
}

/** Reads into one buffer, like the store's own get. */
async function readSingle(bucket: S3Bucket, size: number): Promise<void> {
  const { Body } = await bucket.client.send(new GetObjectCommand(bucket.at('single')));
  const target = new Uint8Array(size);
  let at = 0;
  for await (const chunk of Body as AsyncIterable<Uint8Array>) {
    target.set(chunk, at);
    at += chunk.length;
  }
}

async function creates(store: Store, quick: boolean): Promise<number> {
  const folder = `turn/records-${randomBytes(4).toString('hex')}`;
  const record = new TextEncoder().encode(JSON.stringify({ format: 1, text: 'x'.repeat(600) }));
  const count = quick ? atOnce : records;
  let next = 0;
  const one = async () => {
    while (next < count) await store.create(`${folder}/${next++}`, record);
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: atOnce }, one));
  return count / ((performance.now() - start) / 1000);
}

/** The time of a put whose object would not have to survive a power cut. */
async function writeUnsynced(path: string, bytes: Uint8Array): Promise<void> {
  await writeFile(`${path}.tmp`, bytes, { flag: 'wx' });
  await rename(`${path}.tmp`, path);
}

/** Records are created one after the other, as a worker writes them. */
async function millisecondsEach(write: (n: number, blob: Uint8Array) => Promise<void>): Promise<number> {
  const blob = randomBytes(blobBytes);
  const start = performance.now();
  for (let n = 0; n < blobs; n++) await write(n, blob);
  return (performance.now() - start) / blobs;
}

async function rate(bytes: Uint8Array, work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return bytes.length / 2 ** 20 / ((performance.now() - start) / 1000);
}

/** Random bytes, so that no layer can compress them. */
function objectOf(quick: boolean): Uint8Array {
  return randomBytes(quick ? 2 ** 20 : objectBytes);
}
