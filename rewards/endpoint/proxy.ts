/**
 * The address at which a user's scorer asks the endpoint: a server on the loopback interface of the reward worker. It
 * adds the key and the model, keeps the limits of the run and sends again what failed. Every scorer process has its own
 * secret path, so that petrel knows which one waits, and no other program of the machine can use the key.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { baseUrl } from '../../core/endpoint.ts';
import { errorToJson, RetryableError } from '../../core/errors.ts';
import type { Desk, Desks } from '../host/host-types.ts';
import type { EndpointClient } from './client.ts';

const loopback = '127.0.0.1';
const longestBody = 8 * 1024 * 1024;

export interface ProxyListener {
  /** The endpoint is down, or refuses the recipe: no sample may be scored. */
  fault(error: unknown): void;
  say(line: string): void;
}

export class EndpointProxy implements Desks {
  readonly #client: EndpointClient;
  readonly #listener: ProxyListener;
  readonly #server: Server;
  readonly #desks = new Map<string, OpenDesk>();

  static async start(client: EndpointClient, listener: ProxyListener): Promise<EndpointProxy> {
    const proxy = new EndpointProxy(client, listener);
    proxy.#server.listen(0, loopback);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  private constructor(client: EndpointClient, listener: ProxyListener) {
    this.#client = client;
    this.#listener = listener;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    // A request may wait for the limits of the run for longer than the server's own five minutes.
    this.#server.requestTimeout = 0;
  }

  open(): Desk {
    const token = randomBytes(16).toString('hex');
    const { port } = this.#server.address() as AddressInfo;
    const desk = new OpenDesk(`${loopback}:${port}/${token}`, () => this.#desks.delete(token));
    this.#desks.set(token, desk);
    return desk;
  }

  async close(): Promise<void> {
    for (const desk of [...this.#desks.values()]) desk.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, token = '', path = ''] = /^\/([0-9a-f]+)(\/.*)$/.exec(request.url ?? '') ?? [];
    const desk = this.#desks.get(token);
    if (desk === undefined) return answer(response, 404, failure('there is nothing here'));
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the scorer did not wait for the answer')));
    const signal = AbortSignal.any([desk.signal, gone.signal]);
    try {
      await this.#pass(request, path, response, desk, signal);
    } catch (error) {
      if (signal.aborted) return void response.destroy();
      this.#listener.fault(error);
      answer(response, 502, failure(errorToJson(error).message));
    }
  }

  async #pass(
    request: IncomingMessage,
    path: string,
    response: ServerResponse,
    desk: OpenDesk,
    signal: AbortSignal,
  ): Promise<void> {
    const { settings } = this.#client;
    const body = await bodyOf(request);
    if (body === undefined) return answer(response, 413, failure(`a request has at most ${longestBody} bytes`));
    const passed = {
      method: request.method ?? 'POST',
      // verl's scorers write http://{reward_router_address}/v1/…; the address of the recipe has its own /v1.
      url: `${baseUrl(settings.url ?? '')}${path.replace(/^\/v1(?=\/|$)/, '')}`,
      body: body === '' ? undefined : withModel(body, settings.model),
      // The request is the scorer's own: what is wrong with it, the scorer must know.
      passes: (refused: number) => refused >= 400 && refused !== 401 && refused !== 403,
      say: (line: string) => this.#listener.say(line),
    };
    const { status, headers, text } = await desk.whileBusy(() => this.#client.ask(passed, signal));
    // A service that repeats the key in an answer would give it to the scorer.
    answer(response, status, this.#client.clean(text), headers['content-type']);
  }
}

class OpenDesk implements Desk {
  readonly address: string;
  onChange: () => void = () => {};
  readonly #closing = new AbortController();
  readonly #closed: () => void;
  #requests = 0;

  constructor(address: string, closed: () => void) {
    this.address = address;
    this.#closed = closed;
  }

  get isBusy(): boolean {
    return this.#requests > 0;
  }

  close(): void {
    this.#closing.abort(new RetryableError('ScorerHostClosed', 'the scorer process ended'));
    this.#closed();
  }

  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  async whileBusy<T>(work: () => Promise<T>): Promise<T> {
    this.#count(1);
    try {
      return await work();
    } finally {
      this.#count(-1);
    }
  }

  #count(change: number): void {
    this.#requests += change;
    this.onChange();
  }
}

/** undefined when it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > longestBody) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The recipe's model, unless the scorer names one. */
function withModel(body: string, model: string | undefined): string {
  if (model === undefined) return body;
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== 'object' || value === null || Array.isArray(value) || 'model' in value) return body;
    return JSON.stringify({ model, ...value });
  } catch {
    return body; // the endpoint says what is wrong with it
  }
}

const failure = (message: string): string => JSON.stringify({ error: { message, type: 'petrel' } });

function answer(response: ServerResponse, status: number, text: string, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type });
  response.end(text);
}
