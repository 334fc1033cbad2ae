/** A real HTTP server in the shape of OpenAI's interface, which notes what it sees, and fails as a test wants. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The fields that tests read: of a chat, or of a sample that was posted. */
export interface SeenBody {
  readonly messages: readonly { readonly content: string }[];
  readonly solution_str: string;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: SeenBody;
  /** Time by performance.now. */
  readonly at: number;
}

export interface ServedAnswer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  /** Text as it is, anything else as JSON. */
  readonly body?: unknown;
  /** Cuts the connection instead. */
  readonly cut?: true;
}

/** `n`: number of the request, from 1. */
export type Answering = (request: SeenRequest, n: number) => ServedAnswer | Promise<ServedAnswer>;

/** A completion with this text. */
export const says = (content: unknown, finish = 'stop', tokens?: number): ServedAnswer => ({
  body: {
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: finish }],
    ...(tokens !== undefined && { usage: { total_tokens: tokens } }),
  },
});

export class ChatServer {
  readonly seen: SeenRequest[] = [];
  /** Requests whose client went away before the answer. */
  gone = 0;
  /** Most requests at the same time. */
  most = 0;
  busy = 0;
  answering: Answering;
  models: readonly string[] = ['tiny'];
  readonly #server: Server;
  #port = 0;

  static async start(answering: Answering): Promise<ChatServer> {
    const server = new ChatServer(answering);
    await server.listen(0);
    return server;
  }

  private constructor(answering: Answering) {
    this.answering = answering;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Listens again on the same port, after `close`. */
  async listen(port = this.#port): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  /** Most requests that began within so many ms of each other. */
  mostWithin(ms: number): number {
    const times = this.seen.map(({ at }) => at);
    return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + ms).length));
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = performance.now();
    let text = '';
    for await (const chunk of request) text += String(chunk);
    if (request.method === 'GET' && request.url?.endsWith('/models') === true)
      return send(response, { body: { object: 'list', data: this.models.map((id) => ({ id, object: 'model' })) } });
    const { method = '', url: path = '', headers } = request;
    const seen = { method, path, headers, body: JSON.parse(text) as SeenBody, at };
    this.seen.push(seen);
    this.busy += 1;
    this.most = Math.max(this.most, this.busy);
    response.once('close', () => {
      this.busy -= 1;
      if (!response.writableFinished) this.gone += 1;
    });
    const answer = await this.answering(seen, this.seen.length);
    if (answer.cut === true) response.destroy();
    else send(response, answer);
  }
}

function send(response: ServerResponse, { status = 200, headers, body }: ServedAnswer): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
}
