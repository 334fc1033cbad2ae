/**
 * The metadata service of one instance (IMDSv2): a token first, then what the machine may know of itself. Each instance
 * has its own, on a port of its own, where EC2 has one address for all.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loopback } from '../../infra/ports.ts';

export interface MetadataService {
  readonly endpoint: string;
  /** Sets an entry below `/latest/`: `meta-data/spot/instance-action`. */
  set(path: string, value: string): void;
  close(): Promise<void>;
}

export async function startMetadata(entries: Readonly<Record<string, string>>): Promise<MetadataService> {
  const values = new Map(Object.entries(entries));
  /** Token → when it expires. */
  const tokens = new Map<string, number>();
  const server = createServer((request, response) => answer(request, response, values, tokens));
  server.listen(0, loopback);
  await once(server, 'listening');
  return {
    endpoint: `http://${loopback}:${(server.address() as AddressInfo).port}`,
    set: (path, value) => void values.set(path, value),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function answer(
  { method, url = '', headers }: IncomingMessage,
  response: ServerResponse,
  values: ReadonlyMap<string, string>,
  tokens: Map<string, number>,
): void {
  const reply = (status: number, text: string) =>
    response.writeHead(status, { 'Content-Type': 'text/plain' }).end(text);
  const path = decodeURIComponent(url)
    .replace(/^\/latest\//, '')
    .replace(/\/$/, '');
  if (method === 'PUT' && path === 'api/token') {
    const seconds = Number(headers['x-aws-ec2-metadata-token-ttl-seconds']);
    if (!(seconds >= 1 && seconds <= 21_600)) return void reply(400, 'expected a lifetime of 1 to 21600 seconds');
    const token = randomUUID();
    tokens.set(token, Date.now() + seconds * 1_000);
    return void reply(200, token);
  }
  const token = headers['x-aws-ec2-metadata-token'];
  if (typeof token !== 'string' || (tokens.get(token) ?? 0) < Date.now()) return void reply(401, 'Unauthorized');
  const value = values.get(path) ?? listing(values, path);
  if (value === undefined) return void reply(404, 'Not Found');
  reply(200, value);
}

/** The names below a folder, one a line; those that have names below them end in "/". */
function listing(values: ReadonlyMap<string, string>, folder: string): string | undefined {
  const below = [...values.keys()].filter((path) => path.startsWith(`${folder}/`));
  const names = below.map((path) => path.slice(folder.length + 1).replace(/\/.*/, '/'));
  return names.length === 0 ? undefined : [...new Set(names)].join('\n');
}
