/**
 * The first program of a bought machine, which stands in its user data: fetches the program that joins (join-main.ts)
 * from the store by its digest, and writes it with the launch's token in front. In S3 it signs its one request itself
 * (AWS Signature Version 4), because the SDK does not fit into 16 KB.
 */
import { createHash, createHmac } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The facts that infra/fleet/boot-script.ts writes. */
interface Boot {
  readonly store: string;
  readonly key: string;
  readonly digest: string;
  readonly region: string;
  /** Endpoint of an S3 server that is not AWS. */
  readonly endpoint?: string;
  readonly token: unknown;
}
interface Credentials {
  readonly AccessKeyId: string;
  readonly SecretAccessKey: string;
  readonly Token?: string;
}

const { env, argv } = process;
const boot = (globalThis as unknown as { readonly petrelBoot: Boot }).petrelBoot;
const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest('hex');
const hmac = (key: Uint8Array | string, data: string) => createHmac('sha256', key).update(data).digest();

const program = await fetchProgram();
if (sha256(program) !== boot.digest) throw new Error(`expected the program ${boot.digest}, got ${sha256(program)}`);
const text = `globalThis.petrelToken = ${JSON.stringify(boot.token)};\n${new TextDecoder().decode(program)}`;
writeFileSync(argv[2] ?? '', text, { mode: 0o600 });

async function fetchProgram(): Promise<Uint8Array> {
  if (boot.store.startsWith('file:')) return readFileSync(`${fileURLToPath(boot.store)}/${boot.key}`);
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(boot.store) ?? [];
  const folder = prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
  const at = boot.endpoint ?? `https://s3.${boot.region}.amazonaws.com`;
  const path = `/${[bucket, ...(folder + boot.key).split('/')].map(encodeURIComponent).join('/')}`;
  const url = new URL(path, at);
  const answer = await fetch(url, { headers: signed(url, await credentials()) });
  if (!answer.ok) throw new Error(`${url.href}: status ${answer.status}: ${(await answer.text()).slice(0, 300)}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** The credentials of the instance profile, unless the environment has some. */
async function credentials(): Promise<Credentials> {
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: session } = env;
  if (id !== undefined && secret !== undefined)
    return { AccessKeyId: id, SecretAccessKey: secret, ...(session !== undefined && { Token: session }) };
  const service = env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ?? 'http://169.254.169.254';
  const ask = async (method: string, path: string, headers: Record<string, string>) => {
    const answer = await fetch(`${service}/latest/${path}`, { method, headers });
    if (!answer.ok) throw new Error(`the metadata service has no ${path}: status ${answer.status}`);
    return answer.text();
  };
  const token = await ask('PUT', 'api/token', { 'X-aws-ec2-metadata-token-ttl-seconds': '300' });
  const headers = { 'X-aws-ec2-metadata-token': token };
  const role = (await ask('GET', 'meta-data/iam/security-credentials/', headers)).split('\n')[0];
  return JSON.parse(await ask('GET', `meta-data/iam/security-credentials/${role}`, headers)) as Credentials;
}

function signed({ host, pathname }: URL, { AccessKeyId, SecretAccessKey, Token }: Credentials): Record<string, string> {
  const now = new Date().toISOString().replaceAll(/[:-]|\.\d+/g, '');
  const scope = `${now.slice(0, 8)}/${boot.region}/s3/aws4_request`;
  const body = sha256('');
  const headers: Record<string, string> = {
    host,
    'x-amz-content-sha256': body,
    'x-amz-date': now,
    ...(Token !== undefined && { 'x-amz-security-token': Token }),
  };
  const names = Object.keys(headers).join(';');
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const request = ['GET', pathname, '', lines.join(''), names, body].join('\n');
  const key = scope.split('/').reduce<Uint8Array | string>((last, part) => hmac(last, part), `AWS4${SecretAccessKey}`);
  const signature = hmac(key, ['AWS4-HMAC-SHA256', now, scope, sha256(request)].join('\n')).toString('hex');
  const { host: _, ...sent } = headers;
  return {
    ...sent,
    Authorization: `AWS4-HMAC-SHA256 Credential=${AccessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}
