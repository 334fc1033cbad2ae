// @module-tag long
/** How often an iteration asks a store that is far away, and how often it waits for an answer. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import type { AnsweredRequest, FaultProxy } from '../fault-proxy.ts';
import { LoopUnderTest, onePool } from '../loop-under-test.ts';
import { startSeaweed } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { inARow, kindOf, startFarStore, statusLook, trafficOf } from '../store-traffic.ts';

const iterations = 8;
const recipe: Tree = {
  deterministic: true,
  rollout: { max_num_seqs: 256 }, // one rollout job
  trainer: { total_training_steps: iterations, save_freq: -1 },
};

const folder = mkdtempSync(join(tmpdir(), 'petrel-requests-'));
let server: S3Server;
let proxy: FaultProxy;
let loop: LoopUnderTest;
let traffic: AnsweredRequest[][];
beforeAll(async () => {
  server = await startSeaweed(folder);
  proxy = await startFarStore(server.endpoint, 20);
  const url = server.use('team/runs');
  process.env['AWS_ENDPOINT_URL'] = proxy.endpoint;
  loop = new LoopUnderTest(url);
  await loop.up(onePool);
  await loop.reaches(await loop.start(recipe), 'completed');
  // The first iterations begin where no stage has left the log.
  traffic = trafficOf(proxy.answered(), 4, iterations);
});
afterAll(async () => {
  await loop?.remove();
  await proxy?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/**
 * Counts requests by kind, each in the iteration that sent fewest of it: on a busy machine a job may be looked for
 * again.
 */
function fewestOfEach(): Record<string, number> {
  const kinds = new Set(traffic.flat().map(kindOf));
  const fewest = (kind: string) =>
    Math.min(...traffic.map((requests) => requests.filter((one) => kindOf(one) === kind).length));
  return Object.fromEntries([...kinds].map((kind) => [kind, fewest(kind)] as const).filter(([, n]) => n > 0));
}

it('sends at most 30 requests in an iteration', () => {
  const fewest = fewestOfEach();
  expect(fewest).toEqual({
    'HEAD term.json': 6, // rollout and reward look together, then advantage, then update
    'PUT blobs': 3, // trajectories, scores, batch
    'GET blobs': 4, // trajectories by reward; trajectories and scores by advantage; the batch by update
    'PUT results': 4,
    'PUT batch.json': 1,
    'PUT update.json': 1,
  });
  expect(Object.values(fewest).reduce((sum, n) => sum + n, statusLook)).toBeLessThanOrEqual(30);
});

it('waits for at most 12 answers in a row', () => {
  expect(Math.min(...traffic.map(inARow))).toBeLessThanOrEqual(12);
});
