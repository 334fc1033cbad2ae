/** Temporal on this machine under the variables of a proxy: both of its clients go there directly. */
import { WorkflowNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { connectTemporalClient, connectTemporalWorker } from '../../infra/temporal/connection.ts';
import type { HasTemporal } from '../../infra/temporal/connection.ts';
import { startRecordingProxy } from '../recording-proxy.ts';
import type { RecordingProxy } from '../recording-proxy.ts';
import { startTemporal, temporaryHome } from '../servers.ts';
import type { TestServer } from '../servers.ts';

const { home, remove } = temporaryHome();
let server: TestServer & HasTemporal;
let proxy: RecordingProxy;

beforeAll(async () => {
  proxy = await startRecordingProxy();
  for (const name of ['http_proxy', 'https_proxy', 'all_proxy', 'grpc_proxy']) {
    vi.stubEnv(name, proxy.url);
    vi.stubEnv(name.toUpperCase(), proxy.url);
  }
  for (const name of ['no_proxy', 'NO_PROXY', 'no_grpc_proxy']) vi.stubEnv(name, '');
  vi.stubEnv('TEMPORAL_TLS', 'true');
  vi.stubEnv('TEMPORAL_ADDRESS', 'cloud.invalid:7233');
  server = await startTemporal(home);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.stop();
  await proxy?.close();
  remove();
});

it('the client of commands', async () => {
  const client = await connectTemporalClient(server, 20_000);
  await expect(client.workflow.getHandle('none').describe()).rejects.toThrow(WorkflowNotFoundError);
  await client.connection.close();
  expect(proxy.asked).toEqual([]);
});

it('the client of the control process', async () => {
  const connection = await connectTemporalWorker(server, 20_000);
  await connection.close();
  expect(proxy.asked).toEqual([]);
});
