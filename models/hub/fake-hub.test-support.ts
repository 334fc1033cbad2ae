/** Hubs on 127.0.0.1 for tests, which support the real clients' calls and can inject faults. */
import { createHash } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export const fakeCommit = 'c0ffee'.padEnd(40, '0');

export interface FakeFile {
  readonly bytes: Uint8Array;
  /** Stored by LFS: listed with its SHA-256, served from another host after a redirect. */
  readonly lfs?: boolean;
}

export class FakeHub {
  readonly files = new Map<string, FakeFile>();
  /** Requests by method and path, in order. */
  readonly log: string[] = [];
  /** Authorization and cookie headers that the second host received; there must be none. */
  readonly leaked: string[] = [];
  /** Closes the connection after this many bytes of a file, this many times. */
  breakAfter: { readonly bytes: number; times: number } | undefined;
  /** Returns this status for everything. */
  status: number | undefined;
  /** Requires this token. */
  token: string | undefined;
  /** Changes one byte of the response, this many times. */
  corrupt = 0;
  readonly #hub: Server;
  readonly #cdn: Server;

  constructor() {
    this.#hub = createServer((request, response) => this.answer(request, response));
    this.#cdn = createServer((request, response) => {
      const { authorization, cookie } = request.headers;
      for (const secret of [authorization, cookie]) if (secret !== undefined) this.leaked.push(secret);
      this.send(decodeURIComponent((request.url ?? '').slice(1)), request, response);
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`;
  }

  async start(): Promise<void> {
    for (const server of [this.#hub, this.#cdn])
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    for (const server of [this.#hub, this.#cdn]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  protected answer(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '').replace(/\?.*/, '');
    this.log.push(path);
    if (this.status !== undefined) return json(response, this.status, { error: 'injected' });
    if (this.token !== undefined && request.headers.authorization !== `Bearer ${this.token}`)
      return json(response, 401, { error: 'Invalid credentials' });
    if (path === '/api/models/org/tiny/revision/main')
      return json(response, 200, { _id: '1', id: 'org/tiny', sha: fakeCommit, lastModified: '2026-01-02' });
    if (path === `/api/models/org/tiny/tree/${fakeCommit}`) return json(response, 200, this.#tree());
    const file = path.startsWith(`/org/tiny/resolve/${fakeCommit}/`) ? path.split('/').at(-1) : undefined;
    if (file === undefined || !this.files.has(file))
      return json(response, 404, { error: 'Repository not found' }, { 'X-Error-Code': 'RepoNotFound' });
    this.sendOrRedirect(file, request, response);
  }

  protected sendOrRedirect(file: string, request: IncomingMessage, response: ServerResponse): void {
    if (this.files.get(file)?.lfs !== true) return this.send(file, request, response);
    response
      .writeHead(302, { location: `http://127.0.0.1:${(this.#cdn.address() as AddressInfo).port}/${file}` })
      .end();
  }

  #tree(): unknown[] {
    const entries = [...this.files].map(([path, { bytes, lfs }]) => {
      const oid = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      return {
        type: 'file',
        path,
        size: bytes.length,
        oid,
        ...(lfs === true && { lfs: { oid: sha256, size: bytes.length, pointerSize: 130 } }),
      };
    });
    return [...entries, { type: 'directory', path: 'onnx', size: 0, oid: '0' }];
  }

  protected send(name: string, request: IncomingMessage, response: ServerResponse): void {
    const bytes = Uint8Array.from(this.files.get(name)?.bytes ?? []);
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    const [start, end] =
      range === null
        ? [0, bytes.length]
        : [Number(range[1]), Math.min(Number(range[2] || bytes.length) + 1, bytes.length)];
    const part = bytes.subarray(start, end);
    const probe = range !== null && end - start <= 1;
    if (!probe && this.corrupt > 0) {
      this.corrupt--;
      part[0] = (part[0] ?? 0) ^ 1;
    }
    response.writeHead(range === null ? 200 : 206, {
      etag: `"${name}"`,
      'content-length': part.length,
      ...(range === null ? {} : { 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` }),
    });
    const fault = this.breakAfter;
    if (!probe && fault !== undefined && fault.times > 0 && part.length > fault.bytes) {
      fault.times--;
      response.write(part.subarray(0, fault.bytes), () => response.destroy());
    } else response.end(part);
  }
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
