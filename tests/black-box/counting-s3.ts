/**
 * An S3 endpoint that serves objects from memory and records every request. It supports the requests with which petrel
 * reads runs and cleans up: HEAD, GET, conditional PUT, DELETE and listings of at most 1,000 names. tests/contracts
 * shows that petrel works with real servers.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const pageSize = 1000;

export interface CountingS3 {
  /** Environment variables with which petrel finds this server. */
  readonly env: Readonly<Record<string, string>>;
  /** `s3://bucket/prefix`. */
  readonly url: (prefix: string) => string;
  /** Objects by prefix and key, as `long/runs/…`. */
  readonly objects: Map<string, Uint8Array>;
  /** Requests since the last call, as `GET long/runs/…/run.json`. */
  requests(): string[];
  close(): Promise<void>;
}

const bucket = 'counted';

/** Names under each prefix that was listed, ascending. The cache is cleared when an object is created or removed. */
type Listings = Map<string, readonly string[]>;

export async function startCountingS3(): Promise<CountingS3> {
  const objects = new Map<string, Uint8Array>();
  const listings: Listings = new Map();
  const seen: string[] = [];
  const server = createServer((request, reply) => {
    serve(objects, listings, seen, request, reply).catch((error: unknown) => reply.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    env: {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'petrel',
      AWS_SECRET_ACCESS_KEY: 'petrel-secret',
      AWS_REQUEST_CHECKSUM_CALCULATION: 'WHEN_REQUIRED', // bodies arrive unchanged, without checksums after them
    },
    url: (prefix) => `s3://${bucket}/${prefix}`,
    objects,
    requests: () => seen.splice(0),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

async function serve(
  objects: Map<string, Uint8Array>,
  listings: Listings,
  seen: string[],
  request: IncomingMessage,
  reply: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://s3');
  const key = decodeURIComponent(url.pathname).slice(bucket.length + 2);
  const body = await bodyOf(request);
  seen.push(`${request.method} ${key}${url.searchParams.has('list-type') ? url.searchParams.get('prefix') : ''}`);
  if (url.searchParams.has('uploads')) return xml(reply, 'ListMultipartUploadsResult', '');
  if (url.searchParams.has('list-type')) return xml(reply, 'ListBucketResult', page(objects, listings, url));
  if (key === '') return void reply.writeHead(200).end();
  const object = objects.get(key);
  if (request.method === 'PUT') {
    if (request.headers['if-none-match'] === '*' && object !== undefined)
      return refuse(reply, 412, 'PreconditionFailed');
    objects.set(key, body);
    listings.clear();
    return void reply.writeHead(200, { etag: etag(body) }).end();
  }
  if (request.method === 'DELETE') {
    objects.delete(key);
    listings.clear();
    return void reply.writeHead(204).end();
  }
  if (object === undefined) return refuse(reply, 404, 'NoSuchKey');
  reply.writeHead(200, { 'content-length': object.byteLength, etag: etag(object) });
  reply.end(request.method === 'HEAD' ? undefined : object);
}

/** Names in ascending order, or with a delimiter the names and folders directly under the prefix. */
function page(objects: ReadonlyMap<string, unknown>, listings: Listings, url: URL): string {
  const prefix = url.searchParams.get('prefix') ?? '';
  const delimiter = url.searchParams.get('delimiter');
  const after = url.searchParams.get('continuation-token') ?? '';
  const entries = listings.get(`${delimiter} ${prefix}`) ?? entriesUnder(objects.keys(), prefix, delimiter);
  listings.set(`${delimiter} ${prefix}`, entries);
  const left = entries.filter((entry) => entry > after);
  const shown = left.slice(0, pageSize);
  const more = left.length > shown.length;
  return [
    `<IsTruncated>${more}</IsTruncated>`,
    more ? `<NextContinuationToken>${shown.at(-1)}</NextContinuationToken>` : '',
    ...shown.map((entry) =>
      entry.endsWith('/')
        ? `<CommonPrefixes><Prefix>${entry}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${entry}</Key></Contents>`,
    ),
  ].join('');
}

function entriesUnder(names: Iterable<string>, prefix: string, delimiter: string | null): string[] {
  const entries = new Set<string>();
  for (const name of names) {
    if (!name.startsWith(prefix)) continue;
    const end = delimiter === null ? -1 : name.indexOf(delimiter, prefix.length);
    entries.add(end === -1 ? name : name.slice(0, end + 1));
  }
  return [...entries].sort();
}

async function bodyOf(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const etag = (bytes: Uint8Array): string => `"${createHash('md5').update(bytes).digest('hex')}"`;

function xml(reply: ServerResponse, root: string, content: string): void {
  reply.writeHead(200, { 'content-type': 'application/xml' });
  reply.end(`<?xml version="1.0" encoding="UTF-8"?>\n<${root}>${content}</${root}>`);
}

function refuse(reply: ServerResponse, status: number, code: string): void {
  reply.writeHead(status, { 'content-type': 'application/xml' });
  reply.end(`<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
}
