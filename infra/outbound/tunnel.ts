/**
 * A connection through an HTTP proxy to another host, asked for with CONNECT. (undici's own asks again without end when
 * a proxy closes the connection, waits for 300 s when it says nothing, and does not say which proxy refused, or why.)
 */
import { request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { RetryableError } from '../../core/errors.ts';

/** A proxy that has not answered after this time is taken for silent. */
const patienceMs = 30_000;

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Resolves with the open connection. Rejects with RetryableError `ProxyRefused` that names proxy and answer. */
export function tunnel(proxy: URL, { host, port }: Target, silenceMs = patienceMs): Promise<Socket> {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const ask = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = ask({
    host: proxy.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: proxy.port === '' ? (proxy.protocol === 'https:' ? 443 : 80) : Number(proxy.port),
    method: 'CONNECT',
    path: authority,
    agent: false,
    headers: { host: authority, ...credentialsOf(proxy) },
  });
  return new Promise((resolve, reject) => {
    const refuse = (what: string, status?: number) => {
      request.destroy();
      reject(refused(proxy, authority, what, status));
    };
    request.setTimeout(silenceMs, () => refuse(`says nothing for ${silenceMs / 1000} s`));
    request.once('connect', (answer, socket: Socket) => {
      if (answer.statusCode === 200) return resolve(released(request, socket));
      socket.destroy();
      refuse(`answers ${statusOf(answer)}`, answer.statusCode);
    });
    request.once('response', (answer) => refuse(`answers ${statusOf(answer)}`, answer.statusCode));
    request.on('error', ({ message }) => refuse(`cannot be used: ${message}`));
    request.end();
  });
}

/** The time limit was for the answer. */
function released(request: ClientRequest, socket: Socket): Socket {
  request.setTimeout(0);
  socket.setTimeout(0);
  return socket;
}

const statusOf = ({ statusCode = 0, statusMessage = '' }: IncomingMessage): string =>
  `${statusCode} ${statusMessage}`.trim();

function credentialsOf({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {};
  const both = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  return { 'proxy-authorization': `Basic ${both}` };
}

function refused(proxy: URL, authority: string, what: string, status: number | undefined): RetryableError {
  const shown = `${proxy.protocol}//${proxy.host}`;
  const [host = authority] = authority.split(/:\d+$/);
  return new RetryableError('ProxyRefused', `the proxy ${shown} ${what}, when it is asked for ${authority}`, {
    hint:
      status === 407
        ? `export https_proxy=${proxy.protocol}//USER:PASSWORD@${proxy.host}`
        : `correct https_proxy, or export no_proxy=${host} to go there without a proxy`,
  });
}
