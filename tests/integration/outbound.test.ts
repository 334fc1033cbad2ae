/** Requests of the hub, S3, EC2 and users' services under a proxy that notes what it is asked for. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DescribeInstancesCommand } from '@aws-sdk/client-ec2';
import { HeadBucketCommand } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeHub, fakeCommit } from '../../models/hub/fake-hub.test-support.ts';
import { FakeModelScope } from '../../models/hub/fake-modelscope.test-support.ts';
import { HuggingFace } from '../../models/hub/hugging-face.ts';
import { ModelScope } from '../../models/hub/modelscope.ts';
import { send } from '../../rewards/endpoint/post.ts';
import { startRecordingProxy } from '../recording-proxy.ts';
import type { RecordingProxy } from '../recording-proxy.ts';
import { Ec2Clients } from '../../infra/fleet/ec2/client.ts';
import { connectS3 } from '../../infra/store/s3/client.ts';
import { outboundAgents } from '../../infra/outbound/agents.ts';
import { outboundFetch } from '../../infra/outbound/fetch.ts';
import { proxyOf } from '../../infra/outbound/proxy-of.ts';

let server: Server;
let proxy: RecordingProxy;
let here: string;

beforeEach(async () => {
  server = createServer((_request, response) => response.end('{"ok":true}'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  here = `http://127.0.0.1:${port}`;
  proxy = await startRecordingProxy(port);
  for (const name of ['http_proxy', 'https_proxy', 'all_proxy', 'grpc_proxy']) {
    vi.stubEnv(name, proxy.url);
    vi.stubEnv(name.toUpperCase(), proxy.url);
  }
  for (const name of ['no_proxy', 'NO_PROXY']) vi.stubEnv(name, '');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'k');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 's');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await proxy.close();
  server.closeAllConnections();
  server.close();
});

const ways = () => ({ kept: outboundAgents({ keepAlive: true }), fresh: outboundAgents({}), proxyOf });
const post = (url: string) =>
  send({ method: 'POST', url, headers: {}, body: '{}', timeoutMs: 10_000 }, new AbortController().signal, ways());

it('the hub is read through the proxy, and its files too', async () => {
  const hub = new FakeHub();
  await hub.start();
  const towards = await startRecordingProxy(Number(new URL(hub.url).port));
  try {
    hub.files.set('config.json', { bytes: Buffer.from('{}') });
    const env = { http_proxy: towards.url };
    const client = new HuggingFace({ hubUrl: 'http://hub.test', token: undefined, fetch: outboundFetch(env) });
    const model = { name: 'org/tiny', revision: fakeCommit };
    const [file] = await client.files(model);
    if (file === undefined) throw new Error('no file is listed');
    const chunks: Uint8Array[] = [];
    for await (const chunk of await client.read(model, file, 0)) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe('{}');
    expect(towards.asked).toContain(`http://hub.test/org/tiny/resolve/${fakeCommit}/config.json`);
  } finally {
    await towards.close();
    await hub.stop();
  }
});

it('ModelScope is read through the proxy, and the token goes to no other host', async () => {
  const hub = new FakeModelScope();
  await hub.start();
  const towards = await startRecordingProxy(Number(new URL(hub.url).port));
  try {
    hub.files.set('config.json', { bytes: Buffer.from('{}') });
    hub.files.set('model.safetensors', { bytes: Buffer.from('weights'), lfs: true });
    hub.token = 'ms-secret';
    const fetch = outboundFetch({ http_proxy: towards.url });
    const client = new ModelScope({ hubUrl: 'http://hub.test', token: hub.token, fetch });
    const model = await client.commitOf({ name: 'org/tiny', revision: 'master' });
    for (const file of await model.files()) for await (const _ of await model.read(file, 0));
    const asked = 'http://hub.test/api/v1/models/org/tiny/repo';
    expect(towards.asked).toContain(`${asked}/files?Revision=master&Recursive=true`);
    expect(towards.asked).toContain(`${asked}?Revision=master&FilePath=model.safetensors`);
    expect(hub.leaked).toEqual([]);
  } finally {
    await towards.close();
    await hub.stop();
  }
});

it('a hub on this machine, and one that no_proxy names, are read directly', async () => {
  expect(await (await outboundFetch()(here)).json()).toEqual({ ok: true });
  vi.stubEnv('no_proxy', 'hub.invalid');
  await expect(outboundFetch()('http://hub.invalid')).rejects.toThrow();
  expect(proxy.asked).toEqual([]);
});

it('S3 of AWS and of a server elsewhere is reached through the proxy', async () => {
  const { client } = await connectS3({ endpoint: 'http://s3.test:9000' });
  await client.send(new HeadBucketCommand({ Bucket: 'bucket' }));
  expect(proxy.asked).toEqual(['http://s3.test:9000/bucket/']);
  client.destroy();
  vi.stubEnv('AWS_REGION', 'eu-west-1');
  const aws = await connectS3();
  await expect(aws.client.send(new HeadBucketCommand({ Bucket: 'bucket' }))).rejects.toThrow();
  expect(proxy.asked).toContain('bucket.s3.eu-west-1.amazonaws.com:443');
  aws.client.destroy();
});

it('S3 on this machine, and at a host that no_proxy names, is reached directly', async () => {
  const { client } = await connectS3({ endpoint: here });
  await client.send(new HeadBucketCommand({ Bucket: 'bucket' }));
  client.destroy();
  vi.stubEnv('no_proxy', '.invalid');
  const other = await connectS3({ endpoint: 'http://s3.invalid:9000' });
  await expect(other.client.send(new HeadBucketCommand({ Bucket: 'bucket' }))).rejects.toThrow();
  other.client.destroy();
  expect(proxy.asked).toEqual([]);
});

it('EC2 is asked through the proxy', async () => {
  const clients = new Ec2Clients();
  await expect(clients.in('eu-west-1').send(new DescribeInstancesCommand({}))).rejects.toThrow();
  expect(proxy.asked).toContain('ec2.eu-west-1.amazonaws.com:443');
  clients.close();
});

it("a user's service elsewhere is asked through the proxy, over one connection; one on this machine directly", async () => {
  for (const path of ['a', 'b']) expect(await post(`http://judge.test/${path}`)).toMatchObject({ status: 200 });
  expect(proxy.asked).toEqual(['http://judge.test/a', 'http://judge.test/b']);
  expect(await post(`${here}/c`)).toMatchObject({ status: 200, text: '{"ok":true}' });
  expect(proxy.asked).toHaveLength(2);
});
