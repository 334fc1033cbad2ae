// @module-tag long
/** The number of requests that commands make for a long run, counted at an S3 endpoint. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateLog } from '../../bench/log/log-generator.ts';
import { type CountingS3, startCountingS3 } from './counting-s3.ts';
import { PetrelUser } from './petrel.ts';

const sizes = {
  short: { positions: 100, terms: 1 },
  long: { positions: 10_000, terms: 200 },
} as const;
type Size = keyof typeof sizes;
/** How many more requests a command may make for the long run than for the short one. */
const allowed = 10;

/** A version that requests everything takes minutes. The test must fail by its number of requests, not by its time. */
describe('a long run', { timeout: 900_000 }, () => {
  const user = new PetrelUser();
  let s3: CountingS3;
  const runIds = { short: '', long: '' };

  beforeAll(async () => {
    s3 = await startCountingS3();
    for (const state of ['running', 'completed'] as const) {
      for (const size of ['short', 'long'] as const) {
        const log = generateLog({ ...sizes[size], checkpointEvery: 20, validationEvery: 10, state });
        runIds[size] = log.runId;
        for (const [key, bytes] of log.objects) s3.objects.set(`${state}-${size}/${key}`, bytes);
      }
    }
  });
  afterAll(async () => {
    await user.remove();
    await s3.close();
  });

  /** The requests of a command that knows only this store. */
  async function requestsOf(store: string, ...words: readonly string[]): Promise<string[]> {
    mkdirSync(user.home, { recursive: true });
    writeFileSync(join(user.home, 'stores.json'), JSON.stringify({ format: 1, stores: [s3.url(store)] }));
    s3.requests();
    const ran = await user.petrelWith({ env: s3.env, limitMs: 600_000 }, ...words);
    expect(ran.code, ran.err).toBe(0);
    return s3.requests();
  }

  async function more(look: (size: Size) => Promise<string[]>): Promise<number> {
    const [short, long] = [await look('short'), await look('long')];
    expect(short.length).toBeGreaterThan(0);
    return long.length - short.length;
  }

  it('is shown by status with at most ten requests more than a short one', async () => {
    expect(await more((size) => requestsOf(`running-${size}`, 'status', runIds[size]))).toBeLessThanOrEqual(allowed);
  });

  it('is shown by status with its current state', async () => {
    writeFileSync(join(user.home, 'stores.json'), JSON.stringify({ format: 1, stores: [s3.url('running-long')] }));
    const ran = await user.petrelWith({ env: s3.env, limitMs: 600_000 }, 'status', runIds.long, '--json');
    expect(ran.json()).toMatchObject({
      state: 'running',
      iteration: 10_000,
      term: 200,
      accuracyVersion: 10_000,
      latestCheckpoint: { iteration: 10_000 },
    });
  });

  it('is listed by ls with at most ten requests more than a short one', async () => {
    expect(await more((size) => requestsOf(`running-${size}`, 'ls'))).toBeLessThanOrEqual(allowed);
  });

  it.each(['running', 'completed'])(
    'that is %s is handled by the janitor with at most ten requests more',
    async (state) => {
      for (const size of ['short', 'long']) await requestsOf(`${state}-${size}`, 'gc', '--grace', '0s');
      expect(await more((size) => requestsOf(`${state}-${size}`, 'gc', '--grace', '0s'))).toBeLessThanOrEqual(allowed);
    },
  );
});

describe('a run of 130,000 positions', { timeout: 900_000 }, () => {
  const user = new PetrelUser();
  let s3: CountingS3;
  let runId = '';

  beforeAll(async () => {
    s3 = await startCountingS3();
    const log = generateLog({
      positions: 130_000,
      terms: 1,
      checkpointEvery: 10_000,
      validationEvery: 65_000,
      state: 'running',
    });
    runId = log.runId;
    for (const [key, bytes] of log.objects) s3.objects.set(`store/${key}`, bytes);
    mkdirSync(user.home, { recursive: true });
    writeFileSync(join(user.home, 'stores.json'), JSON.stringify({ format: 1, stores: [s3.url('store')] }));
  }, 600_000);
  afterAll(async () => {
    await user.remove();
    await s3.close();
  });

  it('is shown by status with its current state', async () => {
    const ran = await user.petrelWith({ env: s3.env, limitMs: 600_000 }, 'status', runId, '--json');
    expect(ran.err).toBe('');
    expect(ran.json()).toMatchObject({
      state: 'running',
      iteration: 130_000,
      latestCheckpoint: { iteration: 130_000 },
    });
  });
});
