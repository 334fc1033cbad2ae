/** Weights from other processes: real servers on loopback, and weights that are arrays. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { at } from '../../../core/at.ts';
import { holderUrl, weightsPath } from '../../../core/wire/weights.ts';
import { messageProof } from '../../../log/objects/result-proof.ts';
import { poll } from '../../../infra/poll.ts';
import type { ReadableWeights } from './growing-weights.ts';
import { readFromHolders } from './holders.ts';
import { serveWeights } from './holder-server.ts';
import { patienceMs } from '../../../tests/patience.ts';

const secret = 'ab'.repeat(32);
const publication = '0'.repeat(64);
const values = Float32Array.from({ length: 3 * (1 << 20) + 7 }, (_, i) => i);
const asked = { runId: 'run', publication, secret, bytes: values.byteLength };
const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

const whole: ReadableWeights = {
  bytes: async () => values.byteLength,
  beyond: async (count) => (count < values.byteLength ? values.byteLength : undefined),
  read: async (start, into) => into.set(new Uint8Array(values.buffer, start, into.length)),
};

const holder = (found = whole, known: readonly string[] = [secret]) =>
  serveWeights('127.0.0.1', { secretOf: () => known[0], weightsOf: async () => found });

async function serverOf(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  ends.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What the reader wrote, as values. */
async function got(holders: readonly string[]): Promise<{ readonly complete: boolean; readonly read: Float32Array }> {
  const bytes = new Uint8Array(values.byteLength);
  let end = 0;
  const complete = await readFromHolders(holders, asked, (piece) => {
    bytes.set(piece, end);
    end += piece.byteLength;
  });
  return { complete, read: new Float32Array(bytes.buffer, 0, Math.floor(end / 4)) };
}

const isWhole = ({ complete, read }: Awaited<ReturnType<typeof got>>) =>
  complete && Buffer.from(read.buffer, 0, read.byteLength).equals(Buffer.from(values.buffer));

describe('a process that has weights', () => {
  it('gives them whole to one that knows the secret of the run', async () => {
    const url = await holder();
    expect(holderUrl.safeParse(url).success).toBe(true);
    expect(isWhole(await got([url]))).toBe(true);
  });

  it.each([
    ['a wrong proof', { authorization: 'ab'.repeat(32) }, undefined, 403],
    ['no proof', {}, undefined, 403],
    [
      'a proof of another path',
      { authorization: messageProof(secret, weightsPath('run', publication, 1)) },
      undefined,
      403,
    ],
    ['a path that it does not know', {}, '/etc/passwd', 400],
    ['a path behind the last byte', undefined, weightsPath('run', publication, values.byteLength + 1), 404],
  ])('answers %s with a refusal', async (_, headers, path, status) => {
    const where = path ?? weightsPath('run', publication, 0);
    const answer = await fetch((await holder()) + where, {
      headers: headers ?? { authorization: messageProof(secret, where) },
    });
    expect(answer.status).toBe(status);
    expect(await answer.text()).toBe('');
  });

  it('refuses when it never worked for the run, and when it does not have the weights', async () => {
    expect((await got([await holder(whole, [])])).complete).toBe(false);
    const none: ReadableWeights = { ...whole, bytes: async () => undefined };
    expect((await got([await holder(none)])).complete).toBe(false);
  });
});

describe('a process that wants weights', () => {
  it('goes on at another holder where one ends, also in the middle of a value', async () => {
    const url = await holder();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: values.byteLength }), async (bytes) => {
        const dying = await serverOf((_, answer) => {
          answer.writeHead(200, { 'content-length': values.byteLength });
          answer.write(Buffer.from(values.buffer, 0, bytes), () => answer.destroy());
        });
        expect(isWhole(await got([dying, url]))).toBe(true);
      }),
      { numRuns: 20, seed: 42 },
    );
  });

  it('leaves a holder that refuses, is not there, or sends too much', async () => {
    const url = await holder();
    const refusing = await serverOf((_, answer) => answer.writeHead(404).end());
    expect(isWhole(await got([refusing, 'http://127.0.0.1:1', url]))).toBe(true);
    const more = await serverOf((_, answer) => {
      answer.write(Buffer.from(values.buffer));
      answer.end('more than was asked for');
    });
    const { complete, read } = await got([more]);
    expect(complete && read.length === values.length).toBe(false);
  });

  it('gets them while its holder still gets them itself', async () => {
    let ready = 0;
    let wake = () => {};
    const asks: number[] = [];
    const growing: ReadableWeights = {
      ...whole,
      beyond: async (count) => {
        asks.push(count);
        if (ready <= count) await new Promise<void>((resolve) => (wake = resolve));
        return ready;
      },
    };
    const reading = got([await holder(growing)]);
    for (const part of [0.25, 0.5, 1]) {
      const askedBeyond = () => asks.length > 0 && at(asks, -1) >= ready;
      expect(await poll(askedBeyond, { everyMs: 5, timeoutMs: patienceMs })).toBe(true);
      ready = Math.floor(values.byteLength * part);
      wake();
    }
    expect(isWhole(await reading)).toBe(true);
    expect(asks.length).toBeGreaterThan(2);
  });
});
