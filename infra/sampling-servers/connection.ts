/**
 * Requests to a sampling server: an answer in JSON, or a stream of events. The limit is on silence, not on the whole
 * answer: a long sample takes its time.
 */
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { errorToJson } from '../../core/errors.ts';
import { serverRoot } from '../../core/sampling-server.ts';
import type { SamplingServer } from '../../core/sampling-server.ts';
import { outboundWays } from '../outbound/ways.ts';
import { serverDown, serverFailed, serverLost, serverNonsense, serverRefused } from './faults.ts';
import { ticking } from './ticking.ts';

/** What a caller has resolved in its own environment, and how it hears of a wait. */
export interface ServerCaller {
  /** Value of the variable that `apiKey` names. */
  readonly key?: string;
  /** Removes the key from a text. */
  readonly clean: (text: string) => string;
  /** Called while a request waits for its answer, which is no longer than the server may be silent. */
  readonly tick?: () => void;
}

export interface Asked {
  readonly signal?: AbortSignal;
  /** Longer than the server's limit, for an answer that comes at the end of long work. */
  readonly silenceMs?: number;
}

export interface JsonAnswer {
  readonly status: number;
  /** Undefined: the text is no JSON. */
  readonly json: unknown;
  readonly text: string;
}

/** Longest answer that is no stream. */
const longestAnswer = 64 << 20;
/** Longest event of a stream: a server that repeats all tokens in each has long ones. */
const longestEvent = 256 << 20;
const shownText = 300;

export class ServerConnection {
  readonly server: SamplingServer;
  /** Its address, without the path of an interface. */
  readonly root: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #clean: (text: string) => string;
  readonly #tick: (() => void) | undefined;

  constructor(server: SamplingServer, { key, clean, tick }: ServerCaller) {
    this.server = server;
    this.root = serverRoot(server.url);
    this.#clean = clean;
    this.#tick = tick;
    this.#headers = {
      'content-type': 'application/json',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    };
  }

  /** Any answer, whatever its status. Throws UnfitError `ServerDown`, or the signal's reason. */
  async ask(method: 'GET' | 'POST', path: string, body?: object, asked: Asked = {}): Promise<JsonAnswer> {
    const answered = ticking(this.#tick);
    try {
      const response = await this.#begin(method, path, body, asked);
      const text = await whole(response).catch((error: unknown) => {
        asked.signal?.throwIfAborted();
        throw serverDown(this.server.url, reasonOf(error));
      });
      return { status: response.statusCode ?? 0, text, json: parsed(text) };
    } finally {
      answered();
    }
  }

  /** An answer of success, in JSON. Throws what `fault` makes of another one, besides. */
  async get(method: 'GET' | 'POST', path: string, body?: object, asked: Asked = {}): Promise<unknown> {
    const answer = await this.ask(method, path, body, asked);
    if (answer.status < 200 || answer.status >= 300) throw this.fault(answer);
    if (answer.json === undefined && answer.text.trim() !== '')
      throw this.nonsense(`${path} with no JSON: ${this.shown(answer.text)}`);
    return answer.json;
  }

  /**
   * The events of a stream, until it says that it is done. Throws RetryableError `ServerFailed` when it breaks off,
   * `EngineExited` when it is silent, what `fault` makes of another status, and the signal's reason.
   */
  async *events(path: string, body: object, asked: Asked = {}): AsyncGenerator<unknown> {
    const ended = ticking(this.#tick);
    try {
      yield* this.#events(path, body, asked);
    } finally {
      ended();
    }
  }

  async *#events(path: string, body: object, asked: Asked): AsyncGenerator<unknown> {
    const response = await this.#begin('POST', path, body, asked);
    const status = response.statusCode ?? 0;
    try {
      if (status < 200 || status >= 300) throw this.fault({ status, text: await whole(response), json: undefined });
      let isDone = false;
      for await (const data of eventsOf(response)) {
        isDone = data === '[DONE]';
        if (isDone) break;
        const event = parsed(data);
        if (event === undefined) throw this.nonsense(`an event that is no JSON: ${this.shown(data)}`);
        yield event;
      }
      if (!isDone) throw serverFailed(this.server.url, 'the stream of a sample ended in the middle');
    } catch (error) {
      asked.signal?.throwIfAborted();
      if (isSilence(error)) throw serverLost(this.server.url, reasonOf(error));
      if (isConnectionError(error)) throw serverFailed(this.server.url, `a stream broke off: ${reasonOf(error)}`);
      throw error;
    } finally {
      response.destroy();
    }
  }

  /** The error for an answer with such a status. */
  fault({ status, text }: JsonAnswer): Error {
    if (status === 408 || status === 429 || status >= 500)
      return serverFailed(this.server.url, `HTTP ${status} ${this.shown(text)}`.trim());
    return serverRefused(this.server.url, status, this.shown(text), this.server.apiKey);
  }

  nonsense(what: string, hint?: string): Error {
    return serverNonsense(this.server.url, what, hint);
  }

  /** The start of a text of the server, without the key. */
  shown(text: string): string {
    const clean = this.#clean(text).trim();
    return clean.length <= shownText ? clean : `${clean.slice(0, shownText)}…`;
  }

  /** The answer's head. A connection that the server had closed between two requests is opened again. */
  async #begin(method: string, path: string, body: object | undefined, asked: Asked): Promise<IncomingMessage> {
    try {
      return (await this.#send(method, path, body, asked, 'kept')) ?? (await this.#fresh(method, path, body, asked));
    } catch (error) {
      asked.signal?.throwIfAborted();
      throw serverDown(this.server.url, reasonOf(error));
    }
  }

  async #fresh(method: string, path: string, body: object | undefined, asked: Asked): Promise<IncomingMessage> {
    const response = await this.#send(method, path, body, asked, 'fresh');
    if (response === undefined) throw new Error('the connection was closed');
    return response;
  }

  /** Undefined: the server has not seen the request, because it had closed the connection before. */
  #send(
    method: string,
    path: string,
    body: object | undefined,
    { signal, silenceMs = this.server.timeoutMs }: Asked,
    way: 'kept' | 'fresh',
  ): Promise<IncomingMessage | undefined> {
    const url = `${this.root}${path}`;
    const text = body === undefined ? undefined : JSON.stringify(body);
    const length = text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) };
    const { httpAgent, httpsAgent } = outboundWays()[way];
    const secure = url.startsWith('https:');
    return new Promise((resolve, reject) => {
      let answer: IncomingMessage | undefined;
      const sent = (secure ? httpsRequest : httpRequest)(
        url,
        {
          method,
          headers: { ...this.#headers, ...length },
          agent: secure ? httpsAgent : httpAgent,
          // Of silence: it begins again with each piece of the answer.
          timeout: silenceMs,
          ...(signal && { signal }),
        },
        (response) => resolve((answer = response)),
      );
      sent.on('timeout', () => (answer ?? sent).destroy(new Silence(silenceMs)));
      sent.on('error', (error: NodeJS.ErrnoException) => {
        const wasClosed = sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        if (wasClosed && way === 'kept') resolve(undefined);
        else reject(error);
      });
      sent.end(text);
    });
  }
}

async function whole(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > longestAnswer) throw new Error(`the answer has more than ${longestAnswer} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The `data` of server-sent events (WHATWG HTML, 9.2). Comments and other fields are left out. */
async function* eventsOf(response: IncomingMessage): AsyncGenerator<string> {
  response.setEncoding('utf8');
  let rest = '';
  for await (const piece of response) {
    const lines = (rest + String(piece)).split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    if (rest.length > longestEvent) throw new Error(`an event has more than ${longestEvent} bytes`);
    for (const line of lines) if (line.startsWith('data:')) yield line.slice('data:'.length).trim();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** A server that sends nothing for the whole time limit. */
class Silence extends Error {
  constructor(ms: number) {
    super(`silent for ${ms / 1000} s`);
  }
}

const isSilence = (error: unknown): boolean => error instanceof Silence;

/** Node's errors of a connection have a code, or say that it was aborted. */
const isConnectionError = (error: unknown): boolean =>
  error instanceof Error &&
  error.name !== 'AbortError' &&
  !('kind' in error) &&
  ('code' in error || error.message.includes('aborted'));

/** A name with several addresses gives one error for each, and no text of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return [...new Set(error.errors.map((one) => errorToJson(one).message))].join(', ');
  const { message } = errorToJson(error);
  return message === '' ? 'the connection failed' : message;
}
