/** An HTTP proxy on loopback that notes what it is asked for, and sends every request to one server. */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';

export interface RecordingProxy {
  readonly url: string;
  /** Hosts of the requests: `host:port` of a tunnel, `http://host/path` of a plain request. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** `target`: the port on loopback that stands for every host; without it each request is answered with 502. */
export async function startRecordingProxy(target?: number): Promise<RecordingProxy> {
  const asked: string[] = [];
  const server = createServer((incoming, outgoing) => {
    asked.push(incoming.url ?? '');
    if (target === undefined) return void outgoing.writeHead(502).end('no such host');
    const { pathname, search } = new URL(incoming.url ?? '');
    const onward = request(
      { port: target, path: pathname + search, method: incoming.method, headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    incoming.pipe(onward);
  });
  server.on('connect', ({ url = '' }, client) => {
    asked.push(url);
    client.on('error', () => {}); // the client gives up: nothing is left to do for it
    if (target === undefined) return void client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    const onward = connect(target, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
    onward.on('error', () => client.destroy());
    onward.pipe(client).pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
