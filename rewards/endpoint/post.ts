/**
 * One HTTP request with a time limit. node:http, because fetch gives up by itself after five minutes without an answer.
 */
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

/** The agents of one kind of connection: directly, or through a proxy. */
export interface Connections {
  readonly httpAgent: HttpAgent;
  readonly httpsAgent: HttpAgent;
}

/** How requests leave this machine. */
export interface Ways {
  /** Connections that are kept for later requests. */
  readonly kept: Connections;
  /** A new connection for each request. */
  readonly fresh: Connections;
  /** The proxy of requests to a URL; undefined: they go there directly. */
  proxyOf(url: URL): URL | undefined;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly timeoutMs: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** Answers that are longer are refused: an answer about one sample is short. */
const longestAnswer = 8 * 1024 * 1024;

const directly = (keepAlive: boolean): Connections => ({
  httpAgent: new HttpAgent({ keepAlive }),
  httpsAgent: new HttpsAgent({ keepAlive }),
});
const direct: Ways = { kept: directly(true), fresh: directly(false), proxyOf: () => undefined };

/**
 * @throws the signal's reason; Error with what happened to the connection, such as `connect ECONNREFUSED
 * 127.0.0.1:8000`.
 */
export async function send(request: HttpRequest, signal: AbortSignal, ways: Ways = direct): Promise<HttpAnswer> {
  signal.throwIfAborted();
  const tooLong = new AbortController();
  const timer = setTimeout(
    () => tooLong.abort(new Error(`no answer within ${request.timeoutMs / 1000} s`)),
    request.timeoutMs,
  );
  const ended = AbortSignal.any([signal, tooLong.signal]);
  try {
    const answer = (await exchange(request, ended, ways.kept)) ?? (await exchange(request, ended, ways.fresh));
    if (answer === undefined) throw new Error('the connection was closed');
    return answer;
  } catch (error) {
    ended.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * undefined: the server had closed a connection that was kept from an earlier request, so it has not seen this one.
 */
function exchange(
  { method, url, headers, body }: HttpRequest,
  signal: AbortSignal,
  { httpAgent, httpsAgent }: Connections,
): Promise<HttpAnswer | undefined> {
  const secure = url.startsWith('https:');
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  const agent = secure ? httpsAgent : httpAgent;
  const options = { method, headers: { ...headers, ...length }, signal, agent };
  return new Promise((resolve, reject) => {
    const sent = (secure ? httpsRequest : httpRequest)(url, options, (response) => {
      whole(response).then((text) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      }, reject);
    });
    sent.on('error', (error: NodeJS.ErrnoException) => {
      const wasClosed = sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      if (wasClosed) resolve(undefined);
      else reject(new Error(wordsOf(error), { cause: error }));
    });
    sent.end(body);
  });
}

async function whole(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > longestAnswer) {
      response.destroy();
      throw new Error(`the answer has more than ${longestAnswer} bytes`);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A name with several addresses gives one error for each, and no text of its own. */
function wordsOf(error: Error): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    const texts = error.errors.map((one: unknown) => (one instanceof Error ? one.message : String(one)));
    return [...new Set(texts)].join(', ');
  }
  return error.message === '' ? error.name : error.message;
}
