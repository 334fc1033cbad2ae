/**
 * An HTTP proxy in front of a real server, with rules that simulate failures of networks and overloaded servers.
 * Requests pass unchanged, including the Host header, so that their signatures stay valid. Each rule counts how often
 * it fired.
 */
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loopback } from '../infra/ports.ts';

export type Fault =
  /** Answers in place of the server, which does not get the request. */
  | { readonly type: 'answer'; readonly status: number; readonly code: string }
  /** The server handles the request, but the reply and the connection are lost. */
  | { readonly type: 'lose-reply' }
  /** The connection ends after this many bytes of the request's body. */
  | { readonly type: 'cut-upload'; readonly afterBytes: number }
  /** The connection ends after this many bytes of the reply's body. */
  | { readonly type: 'cut-download'; readonly afterBytes: number }
  /** One bit of the body is flipped. */
  | { readonly type: 'flip-upload' }
  | { readonly type: 'flip-download' }
  /** The request waits for this before it continues. */
  | { readonly type: 'wait'; readonly for: () => Promise<unknown> }
  /** The request never gets an answer. */
  | { readonly type: 'silence' }
  /** A function of the test: it answers, or lets the request pass to the server. */
  | {
      readonly type: 'own';
      readonly handle: (request: IncomingMessage, reply: ServerResponse) => Promise<'answered' | 'go on'>;
    };

export interface Rule {
  readonly fault: Fault;
  /** Which requests match; without it all do. */
  readonly when?: (request: IncomingMessage) => boolean;
  /** How often the rule fires; default: once. */
  readonly times?: number;
}

export interface FaultProxy {
  readonly endpoint: string;
  /** Adds a rule for the next matching requests. Rules that have fired often enough are skipped. */
  add(rule: Rule): FiredRule;
  /** All requests since the last call, as `PUT /bucket/key?query`. */
  seen(): string[];
  /** All answered requests since the last call, in the order of their ends. */
  answered(): AnsweredRequest[];
  close(): Promise<void>;
}

export interface AnsweredRequest {
  readonly method: string;
  /** `/bucket/key?query`. */
  readonly url: string;
  /** When it came, and when its answer was sent, in ms of one clock. */
  readonly from: number;
  readonly until: number;
}

export interface FiredRule {
  readonly fired: number;
}

/** Answers with `<Error><Code>SlowDown</Code>…`, as S3 does. */
export const slowDown: Fault = { type: 'answer', status: 503, code: 'SlowDown' };
export const unavailable: Fault = { type: 'answer', status: 503, code: 'ServiceUnavailable' };
export const conflict: Fault = { type: 'answer', status: 409, code: 'ConditionalRequestConflict' };
export const internalError: Fault = { type: 'answer', status: 500, code: 'InternalError' };

export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(target);
  const rules: { readonly rule: Rule; fired: number }[] = [];
  const seen: string[] = [];
  const ended: AnsweredRequest[] = [];
  const server = createServer((request, reply) => {
    const { method = '', url = '' } = request;
    const from = performance.now();
    seen.push(`${method} ${url}`);
    reply.on('finish', () => ended.push({ method, url, from, until: performance.now() }));
    const hit = rules.find(({ rule, fired }) => fired < (rule.times ?? 1) && (rule.when?.(request) ?? true));
    if (hit !== undefined) hit.fired += 1;
    void serve(request, reply, hit?.rule.fault).catch(() => reply.destroy());
  });
  server.on('checkContinue', (request, reply) => {
    reply.writeContinue();
    server.emit('request', request, reply);
  });
  server.keepAliveTimeout = 0; // the client closes, so its next request does not race with this proxy's timeout
  server.listen(0, loopback);
  await once(server, 'listening');
  return {
    endpoint: `http://${loopback}:${(server.address() as AddressInfo).port}`,
    add: (rule) => {
      const entry = { rule, fired: 0 };
      rules.push(entry);
      return entry;
    },
    seen: () => seen.splice(0),
    answered: () => ended.splice(0),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };

  async function serve(request: IncomingMessage, reply: ServerResponse, fault: Fault | undefined): Promise<void> {
    switch (fault?.type) {
      case 'answer':
        for await (const _ of request);
        return answer(reply, fault.status, fault.code);
      case 'silence':
        return;
      case 'wait':
        await fault.for();
        return forward(request, reply, undefined);
      case 'own':
        if ((await fault.handle(request, reply)) === 'answered') return;
        return forward(request, reply, undefined);
      default:
        return forward(request, reply, fault);
    }
  }

  async function forward(request: IncomingMessage, reply: ServerResponse, fault: Fault | undefined): Promise<void> {
    const onward = httpRequest({
      hostname,
      port,
      method: request.method,
      path: request.url,
      headers: request.headers,
      agent: false,
    });
    onward.on('error', () => reply.destroy());
    const answered = once(onward, 'response') as Promise<[IncomingMessage]>;
    answered.catch(() => request.destroy());
    await pass(
      request,
      onward,
      fault?.type === 'cut-upload' ? fault.afterBytes : Infinity,
      fault?.type === 'flip-upload',
    );
    onward.end();
    const [response] = await answered;
    if (fault?.type === 'lose-reply') {
      for await (const _ of response);
      return void reply.destroy();
    }
    reply.writeHead(response.statusCode ?? 500, response.rawHeaders);
    await pass(
      response,
      reply,
      fault?.type === 'cut-download' ? fault.afterBytes : Infinity,
      fault?.type === 'flip-download',
    );
    reply.end();
  }
}

export function answer(reply: ServerResponse, status: number, code: string): void {
  reply.writeHead(status, { 'content-type': 'application/xml' });
  reply.end(
    `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>the test says so</Message></Error>`,
  );
}

/** Copies a body, possibly only its beginning, possibly with a flipped bit. */
async function pass(
  from: IncomingMessage,
  to: NodeJS.WritableStream & { destroy(): unknown },
  untilByte: number,
  flip: boolean,
): Promise<void> {
  let passed = 0;
  for await (const chunk of from as AsyncIterable<Buffer>) {
    const part = chunk.subarray(0, untilByte - passed);
    if (flip && passed === 0 && part.length > 0) part[0] = (part[0] ?? 0) ^ 1;
    passed += part.length;
    if (part.length > 0 && !to.write(part)) await once(to as NodeJS.WritableStream, 'drain');
    if (passed < untilByte) continue;
    to.destroy();
    throw new Error(`cut after ${passed} bytes`);
  }
}
