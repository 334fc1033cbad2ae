import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { freePorts, loopback } from '../ports.ts';
import { ec2Notice } from './ec2-notice.ts';
import type { Notice } from './notice.ts';

const servers: Server[] = [];
const ends: (() => void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) end();
  await Promise.all(
    servers.splice(0).map(
      (server) =>
        new Promise((resolve) => {
          server.closeAllConnections();
          server.close(resolve);
        }),
    ),
  );
});

interface Metadata {
  readonly endpoint: string;
  /** Content of `spot/instance-action`; absent: 404. */
  action: string | undefined;
  /** Valid tokens. */
  readonly tokens: Set<string>;
  readonly requests: string[];
}

/** A metadata service that speaks IMDSv2: every read needs a token. */
async function metadataService(): Promise<Metadata> {
  const [port] = (await freePorts(1)) as [number];
  const metadata: Metadata = {
    endpoint: `http://${loopback}:${port}`,
    action: undefined,
    tokens: new Set(),
    requests: [],
  };
  const server = createServer((request, response) => {
    metadata.requests.push(`${request.method} ${request.url}`);
    const answer = (status: number, text = '') => response.writeHead(status).end(text);
    if (request.method === 'PUT' && request.url === '/latest/api/token') {
      if (request.headers['x-aws-ec2-metadata-token-ttl-seconds'] === undefined) return answer(400);
      const token = `token-${metadata.tokens.size}-${metadata.requests.length}`;
      metadata.tokens.add(token);
      return answer(200, token);
    }
    if (!metadata.tokens.has(String(request.headers['x-aws-ec2-metadata-token']))) return answer(401);
    if (request.url !== '/latest/meta-data/spot/instance-action' || metadata.action === undefined) return answer(404);
    return answer(200, metadata.action);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, loopback, resolve));
  return metadata;
}

/** Resolves with the notice; `seen` counts the polls. */
function watch(endpoint: string, log: (line: string) => void = () => {}): Promise<Notice> {
  return new Promise((resolve) =>
    ends.push(ec2Notice({ endpoint, pollMs: 10, now: () => Date.parse('2026-01-02T03:04:05Z'), log })(resolve)),
  );
}

/** Resolves when the service was asked for the action this many times. */
async function asked(metadata: Metadata, times: number): Promise<void> {
  while (metadata.requests.filter((request) => request.endsWith('instance-action')).length < times)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

const terminate = JSON.stringify({ action: 'terminate', time: '2026-01-02T03:06:05Z' });

describe('the notice of a spot instance', () => {
  it('arrives when the metadata service publishes it, with the time that is left', async () => {
    const metadata = await metadataService();
    const notice = watch(metadata.endpoint);
    await asked(metadata, 3);
    metadata.action = terminate;
    expect(await notice).toEqual({
      reason: 'EC2 will terminate this machine at 2026-01-02T03:06:05Z',
      graceMs: 120_000,
    });
    expect(metadata.requests.filter((request) => request.startsWith('PUT'))).toHaveLength(1);
  });

  it('arrives also after the token has expired', async () => {
    const metadata = await metadataService();
    const notice = watch(metadata.endpoint);
    await asked(metadata, 1);
    metadata.tokens.clear();
    await asked(metadata, 3);
    metadata.action = terminate;
    expect((await notice).graceMs).toBe(120_000);
    expect(metadata.requests.filter((request) => request.startsWith('PUT'))).toHaveLength(2);
  });

  it('does not come from malformed answers, which are logged once', async () => {
    const metadata = await metadataService();
    metadata.action = '{"action":"termin';
    const lines: string[] = [];
    const notice = watch(metadata.endpoint, (line) => lines.push(line));
    await asked(metadata, 4);
    expect(lines).toHaveLength(1);
    metadata.action = terminate;
    expect((await notice).graceMs).toBe(120_000);
  });

  it('is awaited where there is no service, which is logged once', async () => {
    const [port] = (await freePorts(1)) as [number];
    const lines: string[] = [];
    await new Promise<void>((resolve) => {
      ends.push(
        ec2Notice({
          endpoint: `http://${loopback}:${port}`,
          pollMs: 5,
          log: (line) => {
            lines.push(line);
            resolve();
          },
        })(() => {}),
      );
    });
    expect(lines).toEqual([expect.stringContaining('does not say whether this machine will be interrupted')]);
  });
});
