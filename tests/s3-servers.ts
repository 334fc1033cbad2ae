/** Real S3 servers for tests: SeaweedFS, and versitygw where it could be built (`node setup/main.mjs --tests`). */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreateBucketCommand, HeadBucketCommand } from '@aws-sdk/client-s3';
import { connectS3 } from '../infra/store/s3/client.ts';
import type { S3Connection } from '../infra/store/s3/client.ts';
import { usualPatience } from '../infra/store/s3/patience.ts';
import type { Patience } from '../infra/store/s3/patience.ts';
import { petrelHome } from '../infra/home.ts';
import { freePorts, loopback } from '../infra/ports.ts';
import { poll } from '../infra/poll.ts';
import { startServer } from './servers.ts';
import type { TestServer } from './servers.ts';
import { patienceMs } from './patience.ts';

/** Environment variables of the SDK for this server. */
export interface S3Env extends Readonly<Record<string, string>> {
  readonly AWS_ENDPOINT_URL: string;
  readonly AWS_REGION: string;
  readonly AWS_ACCESS_KEY_ID: string;
  readonly AWS_SECRET_ACCESS_KEY: string;
}

export interface S3Server extends TestServer {
  readonly endpoint: string;
  readonly env: S3Env;
  /** Makes this server the default of this process and of the stacks that it starts. Returns `url(prefix)`. */
  use(prefix: string): string;
  /** A store in the bucket that exists: `s3://petrel-tests/<prefix>`. */
  url(prefix: string): string;
  /** A client of this server, or of a proxy in front of it. */
  connect(options?: { readonly endpoint?: string; readonly patience?: Patience }): Promise<S3Connection>;
}

export const testBucket = 'petrel-tests';
const accessKey = 'petrel';
const secretKey = 'petrel-secret';

/** Short pauses, with time limits for a loaded machine. */
export const shortPatience: Patience = {
  ...usualPatience,
  firstPauseMs: 5,
  longestPauseMs: 50,
  idleMs: 20_000,
  replyMs: 60_000,
};

/** SeaweedFS with its data under `folder`. It needs half a GiB of memory, so start one per test file. */
export async function startSeaweed(folder: string): Promise<S3Server> {
  const [master, volume, filer, s3, ...grpc] = (await freePorts(8)) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  mkdirSync(join(folder, 'data'), { recursive: true });
  const configFile = join(folder, 's3.json');
  writeFileSync(
    configFile,
    JSON.stringify({ identities: [{ name: 'petrel', credentials: [{ accessKey, secretKey }], actions: ['Admin'] }] }),
  );
  const flags = {
    ip: loopback,
    'ip.bind': loopback,
    dir: join(folder, 'data'),
    s3: true,
    's3.config': configFile,
    filer: true,
    'volume.max': 20,
    'master.volumeSizeLimitMB': 256,
    'master.telemetry': false,
    'master.port': master,
    'volume.port': volume,
    'filer.port': filer,
    's3.port': s3,
    'master.port.grpc': grpc[0],
    'volume.port.grpc': grpc[1],
    'filer.port.grpc': grpc[2],
    's3.port.grpc': grpc[3],
    's3.port.iceberg': 0,
    's3.port.lance': 0,
  };
  const args = ['server', ...Object.entries(flags).map(([name, value]) => `-${name}=${value}`)];
  return serve('seaweedfs', folder, args, s3);
}

/** Why versitygw is not available here; undefined when it is. */
export function versityMissing(): string | undefined {
  return toolPath('versitygw') === undefined
    ? 'versitygw is not built: it needs Go and the network (node setup/main.mjs --tests)'
    : undefined;
}

/** versitygw with its data under `folder`. */
export async function startVersity(folder: string): Promise<S3Server> {
  const [port] = (await freePorts(1)) as [number];
  for (const name of ['data', 'sidecar']) mkdirSync(join(folder, name), { recursive: true });
  const args = [
    '--port',
    `${loopback}:${port}`,
    '--access',
    accessKey,
    '--secret',
    secretKey,
    '--region',
    'us-east-1',
    '--quiet',
    '--iam-dir',
    makeFolder(join(folder, 'users')),
    'posix',
    '--sidecar',
    join(folder, 'sidecar'),
    join(folder, 'data'),
  ];
  return serve('versitygw', folder, args, port);
}

/** A user of versitygw who may do only what the policy of a bucket says. */
export function addVersityUser({ endpoint }: S3Server, access: string, secret: string): void {
  const command = toolPath('versitygw');
  if (command === undefined) throw new Error('versitygw is missing');
  const admin = ['admin', '--access', accessKey, '--secret', secretKey, '--endpoint-url', endpoint];
  execFileSync(command, [...admin, 'create-user', '--access', access, '--secret', secret, '--role', 'user']);
}

function makeFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  return path;
}

async function serve(name: string, folder: string, args: readonly string[], port: number): Promise<S3Server> {
  const command = toolPath(name);
  if (command === undefined) throw new Error(`${name} is missing: node setup/main.mjs --tests`);
  const endpoint = `http://${loopback}:${port}`;
  const env: S3Env = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: accessKey,
    AWS_SECRET_ACCESS_KEY: secretKey,
  };
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: accessKey,
    AWS_SECRET_ACCESS_KEY: secretKey,
    AWS_REGION: 'us-east-1',
  });
  const server = await startServer(name, folder, command, args, process.env, () => answers(endpoint));
  const connect: S3Server['connect'] = (options = {}) => connectS3({ endpoint, patience: shortPatience, ...options });
  await makeBucket(await connect());
  const url = (prefix: string) => `s3://${testBucket}/${prefix}`;
  const use = (prefix: string) => {
    Object.assign(process.env, env);
    return url(prefix);
  };
  return Object.assign(server, { endpoint, env, url, use, connect });
}

/**
 * The port opens before the server is ready, so this waits for an answer of its S3 interface; a refusal counts as an
 * answer.
 */
async function answers(endpoint: string): Promise<boolean> {
  return fetch(endpoint).then(
    (reply) => reply.status < 500,
    () => false,
  );
}

async function makeBucket({ client }: S3Connection): Promise<void> {
  const made = await poll(
    async () => {
      await client.send(new CreateBucketCommand({ Bucket: testBucket })).catch(() => {}); // not ready, or it exists
      return client.send(new HeadBucketCommand({ Bucket: testBucket })).then(
        () => true,
        () => false,
      );
    },
    { everyMs: 100, timeoutMs: patienceMs },
  );
  client.destroy();
  if (made !== true) throw new Error(`the bucket ${testBucket} could not be made`);
}

/** A program that set-up has brought for tests; undefined when it could not. */
export function toolPath(name: string): string | undefined {
  const file = join(petrelHome(), 'toolchain/tools.json');
  const tools = existsSync(file)
    ? (JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, { readonly path: string }>>)
    : {};
  const path = tools[name]?.path;
  return path !== undefined && existsSync(path) ? path : undefined;
}
