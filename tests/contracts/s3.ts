/** The contract of an S3 server and petrel's client, under all kinds of network failures. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { ensureFences } from '../../infra/store/fencing.ts';
import { sha256 } from '../../log/objects/digest.ts';
import { openStore } from '../../infra/store/open.ts';
import { probeStore } from '../../infra/store/probe.ts';
import type { S3Connection } from '../../infra/store/s3/client.ts';
import { rangeBytes } from '../../infra/store/s3/read.ts';
import { openS3Store } from '../../infra/store/s3/store.ts';
import { conflict, internalError, slowDown, startFaultProxy, unavailable } from '../fault-proxy.ts';
import type { Fault, FaultProxy } from '../fault-proxy.ts';
import { shortPatience, testBucket } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { carelessCreate } from './careless-create.ts';
import { raceRawCreates } from './raw-creates.ts';
import { storeContract } from './store.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (data: Uint8Array | undefined) => (data === undefined ? undefined : new TextDecoder().decode(data));
/** Three ranges, and three parts. */
const large = new Uint8Array(2 * rangeBytes + 1_000).map((_, i) => (i * 7 + (i >> 11)) & 255);

export function s3Contract(name: string, start: (folder: string) => Promise<S3Server>): void {
  let folder: string;
  let server: S3Server;
  let direct: S3Connection;
  let places = 0;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'petrel-s3-'));
    server = await start(join(folder, 'server'));
    direct = await server.connect();
  });
  afterAll(async () => {
    direct?.client.destroy();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  const freshUrl = () => server.url(`place-${++places}/runs`);

  storeContract(name, async () => {
    const url = freshUrl();
    return { store: await openS3Store(url, direct), again: async () => openS3Store(url, await server.connect()) };
  });

  describe(`${name} behind a network that fails`, () => {
    let proxy: FaultProxy;
    let through: S3Connection;
    let store: Store;
    /** A second connection to the same place. */
    let witness: Store;
    beforeEach(async () => {
      proxy = await startFaultProxy(server.endpoint);
      through = await server.connect({ endpoint: proxy.endpoint });
      const url = freshUrl();
      [store, witness] = [await openS3Store(url, through), await openS3Store(url, direct)];
    });
    afterEach(async () => {
      through.client.destroy();
      await proxy.close();
    });

    it('lets exactly one of 32 creates succeed whose last bytes are sent at the same time over separate sockets', async () => {
      const statuses = await raceRawCreates(direct, `${freshUrl()}/raw`, 32);
      expect(statuses.filter((status) => status === 200)).toHaveLength(1);
      expect(statuses.every((status) => [200, 409, 412].includes(status))).toBe(true);
    });

    it('recognises its own create after a lost reply, and no other’s', async () => {
      const lost = proxy.add({ fault: { type: 'lose-reply' }, when: isPut('mine') });
      expect(await store.create('mine', bytes('mine'))).toBe('created');
      expect(lost.fired).toBe(1);
      await witness.create('theirs', bytes('the same'));
      const again = proxy.add({ fault: { type: 'lose-reply' }, when: isPut('theirs') });
      expect(await store.create('theirs', bytes('the same'))).toBe('exists');
      expect(again.fired).toBe(1);
    });

    const refusals: readonly (readonly [string, Fault])[] = [
      ['SlowDown', slowDown],
      ['503', unavailable],
      ['500', internalError],
      ['409', conflict],
      ['a lost reply', { type: 'lose-reply' }],
    ];
    it.each(refusals)('survives %s in every operation', async (_, fault) => {
      await witness.put('there', bytes('there'));
      const steps: readonly (readonly [() => Promise<unknown>, unknown])[] = [
        [() => store.create('new', bytes('new')), 'created'],
        [() => store.put('fact', bytes('fact')), undefined],
        [async () => text(await store.get('there')), 'there'],
        [async () => text(await store.get('there', [1, 3])), 'he'],
        [() => store.head('there'), 5],
        [() => store.list(''), ['fact', 'new', 'there']],
        [() => store.children('sub/'), []],
        [() => store.remove('there'), undefined],
        [() => witness.list(''), ['fact', 'new']],
      ];
      for (const [step, wanted] of steps) {
        const fired = proxy.add({ fault, times: 2 });
        expect(await step()).toEqual(wanted);
        if (step !== steps.at(-1)?.[0]) expect(fired.fired).toBe(2);
      }
    });

    it('fails when refusals last too long, and works again after them', async () => {
      const fired = proxy.add({ fault: slowDown, times: shortPatience.attempts });
      await expect(store.create('key', bytes('x'))).rejects.toMatchObject({
        kind: 'retryable',
        code: 'StoreUnavailable',
        message: expect.stringContaining('SlowDown') as unknown,
      });
      expect(fired.fired).toBe(shortPatience.attempts);
      expect(await store.create('key', bytes('x'))).toBe('created');
    });

    it('waits for a slow store, and closes a connection that falls silent', async () => {
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      const waiting = proxy.add({ fault: { type: 'wait', for: () => held }, when: isPut('slow') });
      const slow = store.create('slow', bytes('slow'));
      expect(await store.create('quick', bytes('quick'))).toBe('created');
      release();
      expect([await slow, waiting.fired]).toEqual(['created', 1]);
      const impatient = await server.connect({
        endpoint: proxy.endpoint,
        patience: { ...shortPatience, idleMs: 1_000 },
      });
      const hurried = await openS3Store(store.url, impatient);
      const silent = proxy.add({ fault: { type: 'silence' } });
      expect([text(await hurried.get('slow')), silent.fired]).toEqual(['slow', 1]);
      impatient.client.destroy();
    });

    it('repeats an upload whose connection breaks in the middle, for whole objects and for parts', async () => {
      const alone = proxy.add({ fault: { type: 'cut-upload', afterBytes: 100_000 }, when: isPut('alone'), times: 2 });
      await store.put('alone', large.subarray(0, 500_000));
      const part = proxy.add({
        fault: { type: 'cut-upload', afterBytes: 1_000_000 },
        when: ({ url = '' }) => url.includes('partNumber=2'),
        times: 2,
      });
      await store.put('parts', large);
      expect([alone.fired, part.fired]).toEqual([2, 2]);
      expect(sha256((await witness.get('alone')) ?? '')).toBe(sha256(large.subarray(0, 500_000)));
      expect(sha256((await witness.get('parts')) ?? '')).toBe(sha256(large));
    });

    it('continues a download that breaks in the middle', async () => {
      await witness.put('small', large.subarray(0, 500_000));
      await witness.put('large', large);
      const small = proxy.add({ fault: { type: 'cut-download', afterBytes: 100_000 }, times: 2 });
      expect(sha256((await store.get('small')) ?? '')).toBe(sha256(large.subarray(0, 500_000)));
      const ranges = proxy.add({
        fault: { type: 'cut-download', afterBytes: 1_000_000 },
        when: ({ headers }) => headers.range !== undefined,
        times: 3,
      });
      expect(sha256((await store.get('large')) ?? '')).toBe(sha256(large));
      const streamed = proxy.add({
        fault: { type: 'cut-download', afterBytes: 1_000_000 },
        when: ({ headers }) => headers.range !== undefined,
        times: 3,
      });
      expect(sha256(Buffer.concat(await collect(store, 'large')))).toBe(sha256(large));
      expect([small.fired, ranges.fired, streamed.fired]).toEqual([2, 3, 3]);
    });

    it('notices a flipped bit in uploads and downloads', async () => {
      const up = proxy.add({ fault: { type: 'flip-upload' }, when: isPut('record') });
      expect(await store.create('record', bytes('a record'))).toBe('created');
      const part = proxy.add({ fault: { type: 'flip-upload' }, when: ({ url = '' }) => url.includes('partNumber=1') });
      await store.put('parts', large);
      const down = proxy.add({ fault: { type: 'flip-download' }, when: ({ method }) => method === 'GET' });
      expect(text(await store.get('record'))).toBe('a record');
      expect(sha256((await witness.get('parts')) ?? '')).toBe(sha256(large));
      expect([up.fired, part.fired, down.fired]).toEqual([1, 1, 1]);
    });

    it('completes an upload once, although the replies are lost', async () => {
      const end = proxy.add({
        fault: { type: 'lose-reply' },
        when: ({ method, url = '' }) => method === 'POST' && url.includes('uploadId='),
        times: 2,
      });
      await store.put('parts', large);
      expect(end.fired).toBe(2);
      expect(sha256((await witness.get('parts')) ?? '')).toBe(sha256(large));
    });

    it('leaves no parts behind when an upload fails for good', async () => {
      const fired = proxy.add({
        fault: unavailable,
        when: ({ url = '' }) => url.includes('partNumber=3'),
        times: shortPatience.attempts,
      });
      await expect(store.put('parts', large)).rejects.toMatchObject({ code: 'StoreUnavailable' });
      expect(fired.fired).toBe(shortPatience.attempts);
      expect(await witness.get('parts')).toBeUndefined();
      const { Uploads = [] } = await direct.client.send(new ListMultipartUploadsCommand({ Bucket: testBucket }));
      expect(Uploads).toEqual([]);
    });

    it('does not return an object that is removed or replaced during the read', async () => {
      await witness.put('large', large);
      let replaced: Promise<void> | undefined;
      const replace = () =>
        (replaced ??= witness.put(
          'large',
          large.map((byte) => byte ^ 1),
        ));
      proxy.add({
        fault: { type: 'wait', for: replace },
        when: ({ headers }) => headers.range !== undefined,
        times: Infinity,
      });
      const read = store.get('large').then((whole) => `${whole?.length} bytes as if nothing had happened`);
      await expect(read).rejects.toMatchObject({ kind: 'retryable', code: 'ObjectChanged' });
    });

    it('keeps no more of a stream in memory than the ranges in flight', async () => {
      await witness.put('large', Buffer.concat(Array.from({ length: 6 }, () => large)));
      proxy.seen();
      const stream = (await store.stream('large'))?.[Symbol.asyncIterator]();
      await stream?.next();
      await stream?.next();
      expect(proxy.seen().filter((line) => line.startsWith('GET')).length).toBeLessThanOrEqual(8);
      await stream?.return?.();
    });

    it('is refused when its server checks first and then writes', async () => {
      proxy.add({ fault: { type: 'own', handle: carelessCreate(direct) }, when: isConditional, times: Infinity });
      await expect(probeStore(store, witness)).rejects.toMatchObject({ kind: 'terminal', code: 'StoreDoesNotFence' });
    });
  });

  describe(`${name} as the store of a machine`, () => {
    const usual = { ...process.env };
    afterEach(() => {
      for (const key of Object.keys(process.env)) if (key.startsWith('AWS_')) delete process.env[key];
      Object.assign(process.env, usual, {
        AWS_ACCESS_KEY_ID: server.env.AWS_ACCESS_KEY_ID,
        AWS_SECRET_ACCESS_KEY: server.env.AWS_SECRET_ACCESS_KEY,
        AWS_REGION: 'us-east-1',
      });
    });

    it('is configured by the SDK’s usual sources, and probed once', async () => {
      const proxy = await startFaultProxy(server.endpoint);
      Object.assign(process.env, server.env, { AWS_ENDPOINT_URL: proxy.endpoint });
      const home = mkdtempSync(join(folder, 'home-'));
      const store = await openStore(`${freshUrl()}/`);
      expect(store.url).toMatch(/^s3:\/\/petrel-tests\/place-\d+\/runs$/);
      expect(store.localPath('x')).toBeUndefined();
      proxy.seen();
      await ensureFences(home, store);
      expect(proxy.seen().filter((line) => line.startsWith('PUT'))).toHaveLength(32);
      await ensureFences(home, store); // a known store is only tested briefly: one object is written, read and removed
      expect(proxy.seen().map((line) => line.split(' ')[0])).toEqual(['HEAD', 'PUT', 'GET', 'DELETE']);
      await proxy.close();
    });

    it('says in its errors what to do', async () => {
      const url = freshUrl();
      const denied = await withEnv({ AWS_SECRET_ACCESS_KEY: 'wrong' }, () => server.connect());
      await expect(openS3Store(url, denied)).rejects.toMatchObject({
        kind: 'terminal',
        code: 'StoreDenied',
        hint: expect.stringContaining('credentials') as unknown,
      });
      await expect(openS3Store('s3://no-such-bucket-here/x', direct)).rejects.toMatchObject({
        code: 'InvalidInput',
        message: expect.stringContaining('no bucket no-such-bucket-here') as unknown,
      });
      const nowhere = await server.connect({ endpoint: 'http://127.0.0.1:9' });
      await expect(openS3Store(url, nowhere)).rejects.toMatchObject({
        kind: 'retryable',
        code: 'StoreUnavailable',
        message: expect.stringContaining('ECONNREFUSED') as unknown,
      });
      const store = await openS3Store(url, direct);
      await expect(store.get('../../other')).rejects.toMatchObject({ code: 'InvalidInput' });
    });

    it('aborts the uploads of dead writers, and no other uploads in the bucket', async () => {
      const url = freshUrl();
      const store = await openS3Store(url, direct);
      const [, Bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/(.*)$/.exec(url) ?? [];
      const begin = (Key: string) => direct.client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
      await begin(`${prefix}/runs/x/blobs/y`);
      const { UploadId, Key } = await begin(`${prefix}/of-another-program`);
      expect(await store.removeLeftovers?.(new Date(Date.now() - 60_000))).toBe(0);
      expect(await store.removeLeftovers?.(new Date(Date.now() + 60_000))).toBe(1);
      expect(await store.removeLeftovers?.(new Date(Date.now() + 60_000))).toBe(0);
      await direct.client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })); // the upload still existed
    });

    it('lists and removes more than one page', async () => {
      const store = await openS3Store(freshUrl(), direct);
      const names = Array.from({ length: 1_030 }, (_, i) => `many/${i}`);
      for (let at = 0; at < names.length; at += 103)
        await Promise.all(names.slice(at, at + 103).map((name) => store.put(name, bytes(name))));
      await store.put('other/1', bytes(''));
      expect(await store.list('many/')).toEqual([...names].sort());
      expect(await store.children('many/')).toHaveLength(1_030);
      expect(await store.children('')).toEqual(['many/', 'other/']);
      await store.remove('many/');
      expect(await store.list('')).toEqual(['other/1']);
    });
  });
}

const isPut =
  (name: string) =>
  ({ method, url = '' }: { method?: string | undefined; url?: string | undefined }) =>
    method === 'PUT' && new RegExp(`/${name}(\\?|$)`).test(url);
const isConditional = ({ headers }: { headers: Readonly<Record<string, unknown>> }) =>
  headers['if-none-match'] !== undefined;

async function collect(store: Store, key: string): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await store.stream(key)) ?? []) chunks.push(chunk);
  return chunks;
}

async function withEnv<T>(env: Readonly<Record<string, string>>, work: () => Promise<T>): Promise<T> {
  Object.assign(process.env, env);
  const made = await work();
  return made;
}
