// @module-tag long
/**
 * A stack with the servers of stack.yaml: a cluster of three NATS servers with accounts, and a namespace of a Temporal
 * server.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jobStream } from '../../core/wire/messages.ts';
import { connectTemporalClient } from '../../infra/temporal/connection.ts';
import { ensureStack, readStack } from '../../infra/stack/index.ts';
import { stackHealth } from '../../infra/stack/health.ts';
import { requireServing } from '../../infra/stack/serving.ts';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import { startNatsCluster } from '../nats-cluster.ts';
import type { NatsCluster } from '../nats-cluster.ts';
import { startTemporal, temporaryHome } from '../servers.ts';

const namespace = 'petrel-lab';
const place = temporaryHome();
const loop = new LoopUnderTest();
let cluster: NatsCluster;
let temporal: Awaited<ReturnType<typeof startTemporal>>;

beforeAll(async () => {
  cluster = await startNatsCluster();
  temporal = await startTemporal(join(place.home, 'temporal'));
  const client = await connectTemporalClient(temporal);
  await client.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  });
  await client.connection.close();
  writeFileSync(
    join(loop.home, 'stack.yaml'),
    `temporal: { address: "${temporal.temporal.address}", namespace: ${namespace} }
nats:
  urls: [${cluster.urls.map((url) => `"${url}"`).join(', ')}]
  credentials: ${cluster.credentials}
  system_credentials: ${cluster.systemCredentials}
`,
  );
  await loop.up(separatePools);
});
afterAll(async () => {
  await loop.remove();
  await Promise.all([cluster?.stop(), temporal?.stop()]);
  place.remove();
});

const recipe = { trainer: { total_training_steps: 6, save_freq: 2 } };
let undisturbed: string[];

describe('a stack with a cluster of three NATS servers and a Temporal namespace (seed 42)', () => {
  it('starts no server of its own, keeps three copies of each queue, and completes a run', async () => {
    expect(readStack(loop.home)?.children.map(({ kind }) => kind)).not.toContain('nats');
    expect(readStack(loop.home)?.children.map(({ kind }) => kind)).not.toContain('temporal');
    const { config } = await (await jetstreamManager(loop.nc)).streams.info(jobStream('rollout'));
    expect(config.num_replicas).toBe(3);
    undisturbed = await loop.states(await loop.completed(recipe));
    expect(await stackHealth(loop.home)).toMatchObject({ state: 'up', problems: [] });
  });

  it.each([0, 1, 2])('goes on with the same bits when server %i is killed, and when it comes back', async (which) => {
    const server = cluster.servers[which];
    const run = await loop.start(recipe);
    await loop.passes(run, 2);
    await server?.kill();
    await loop.passes(run, 4);
    await server?.restart();
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });

  it('refuses a namespace that does not exist, and other servers while it runs', async () => {
    await expect(
      requireServing({ temporal: { address: temporal.temporal.address, namespace: 'nowhere' } }),
    ).rejects.toMatchObject({ where: 'stack.yaml: temporal.namespace', hint: expect.stringContaining('nowhere') });
    const path = join(loop.home, 'stack.yaml');
    const before = readFileSync(path, 'utf8');
    writeFileSync(path, `temporal: { address: "${temporal.temporal.address}", namespace: ${namespace} }\n`);
    await expect(ensureStack({ home: loop.home })).rejects.toMatchObject({ hint: 'petrel down, then petrel up' });
    writeFileSync(path, before);
    await expect(ensureStack({ home: loop.home, listen: { host: '127.0.0.1', port: 1 } })).rejects.toThrow(
      /machines can join only a stack with its own NATS server/,
    );
  });
});
