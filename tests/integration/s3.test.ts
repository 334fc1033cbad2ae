// @module-tag long
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reproducibleMetrics } from '../../core/metrics.ts';
import { actorOf } from '../../core/records/components.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { startFaultProxy, unavailable } from '../fault-proxy.ts';
import type { FaultProxy } from '../fault-proxy.ts';
import { shortPatience, startSeaweed } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { poll } from '../../infra/poll.ts';
import { LoopUnderTest, onePool, separatePools } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';
import { patienceMs } from '../patience.ts';

const recipe: Tree = { deterministic: true, trainer: { total_training_steps: 4, save_freq: 2 } };

const folder = mkdtempSync(join(tmpdir(), 'petrel-s3-run-'));
const onFolder = new LoopUnderTest();
let server: S3Server;
let proxy: FaultProxy;
let onS3: LoopUnderTest;
let [inFolder, inBucket]: (StartedRun | undefined)[] = [];
beforeAll(async () => {
  server = await startSeaweed(folder);
  proxy = await startFaultProxy(server.endpoint);
  const url = server.use('team/runs');
  process.env['AWS_ENDPOINT_URL'] = proxy.endpoint;
  onS3 = new LoopUnderTest(url);
  await onFolder.up(onePool);
  inFolder = await onFolder.start(recipe);
  await onFolder.reaches(inFolder, 'completed');
  await onS3.up(separatePools);
  inBucket = await onS3.start(recipe);
  await onS3.passes(inBucket, 2);
  await kill(onS3.process('train-1'));
  await onS3.reaches(inBucket, 'completed');
}); // two stacks and a server, one after the other
afterAll(async () => {
  await Promise.all([onFolder.remove(), onS3?.remove()]);
  await proxy?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** The parts of the records on which two equal runs agree, in any store. */
const essence = ({ batch, update }: Iteration) => ({
  tensors: batch.tensors,
  state: update.stateDigest,
  weights: actorOf(update.components).weightsDigest,
  metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
});

describe('a deterministic run in a bucket, with every role in a process of its own and a trainer that is killed', () => {
  it('gives the same states, batches and metrics as in a folder', async () => {
    const wanted = (await onFolder.iterations(inFolder as StartedRun)).map(essence);
    expect(wanted).toHaveLength(4);
    expect((await onS3.iterations(inBucket as StartedRun)).map(essence)).toEqual(wanted);
  });

  it('leaves the same objects there, and no secret in any of them', async () => {
    const kinds = async ({ store }: LoopUnderTest, { runId }: StartedRun) =>
      [
        ...new Set(
          (await store.list(`runs/${runId}/`)).map((key) =>
            key.slice(`runs/${runId}/`.length).replace(/(?<=^(blobs|results|logs|weights)\/).*/, '…'),
          ),
        ),
      ].filter((key) => !/^(status|weights|checkpoints\/2-)/.test(key));
    expect(await kinds(onS3, inBucket as StartedRun)).toEqual(await kinds(onFolder, inFolder as StartedRun));
    for (const key of await onS3.store.list('runs/')) {
      const text = Buffer.from((await onS3.store.get(key)) ?? []).toString('latin1');
      for (const secret of [server.env.AWS_SECRET_ACCESS_KEY, proxy.endpoint])
        expect(text.includes(secret), key).toBe(false);
    }
  });

  it('has a ledger without faults', async () => {
    expect(await onS3.faults()).toEqual([]);
  });
});

describe('a run whose store refuses everything for longer than any request is repeated', () => {
  it('waits for it, and continues to the same weights', async () => {
    const run = await onS3.start(recipe);
    await onS3.passes(run, 2);
    let down = true;
    const outage = proxy.add({ fault: unavailable, when: () => down, times: Infinity });
    expect(await poll(() => outage.fired >= 8 * shortPatience.attempts, { everyMs: 50, timeoutMs: patienceMs })).toBe(
      true,
    );
    down = false;
    await onS3.reaches(run, 'completed');
    expect((await onS3.iterations(run)).map(essence)).toEqual(
      (await onFolder.iterations(inFolder as StartedRun)).map(essence),
    );
    expect(await onS3.faults()).toEqual([]);
  });
});
