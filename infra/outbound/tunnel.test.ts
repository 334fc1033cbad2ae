import { once } from 'node:events';
import { createServer, connect } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { outboundFetch } from './fetch.ts';
import { tunnel } from './tunnel.ts';

const servers: Server[] = [];
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** A server whose connections `meet` gets with the first bytes that came. */
async function listening(meet: (socket: Socket, first: string) => void) {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.once('data', (bytes: Buffer) => meet(socket, bytes.toString()));
  }).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, url: new URL(`http://127.0.0.1:${port}`), connections: () => connections };
}

describe('a proxy that is asked for a tunnel', () => {
  it('gives one, and is told who asks', async () => {
    const target = await listening((socket, first) => socket.end(`got ${first}`));
    const asked: string[] = [];
    const proxy = await listening((socket, first) => {
      asked.push(first);
      const onward = connect(target.port, '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        socket.pipe(onward).pipe(socket);
      });
      sockets.push(onward);
    });
    const named = new URL(`http://ann:p%40ss@127.0.0.1:${proxy.port}`);
    const socket = await tunnel(named, { host: '127.0.0.1', port: target.port });
    sockets.push(socket);
    socket.write('hello');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toBe('got hello');
    expect(asked[0]).toMatch(new RegExp(`^CONNECT 127\\.0\\.0\\.1:${target.port} HTTP/1\\.1\r\n`));
    expect(asked[0]).toContain(`authorization: Basic ${Buffer.from('ann:p@ss').toString('base64')}`);
  });

  it.each<readonly [string, (socket: Socket) => void, RegExp, RegExp]>([
    ['closes the connection', (socket) => socket.end(), /cannot be used: socket hang up/, /correct https_proxy/],
    ['cuts the connection', (socket) => socket.resetAndDestroy(), /cannot be used: /, /no_proxy=hub\.example /],
    ['wants a password', answering('407 Proxy Authentication Required'), /answers 407 Proxy/, /USER:PASSWORD@127/],
    ['knows no way', answering('502 Bad Gateway'), /answers 502 Bad Gateway/, /correct https_proxy/],
    ['is no proxy', answering('400 Bad Request'), /answers 400/, /correct https_proxy/],
    ['speaks no HTTP', (socket) => socket.end('SSH-2.0-x\r\n'), /cannot be used: Parse Error/, /correct https_proxy/],
  ])('is asked once, and named, when it %s', async (_, meet, message, hint) => {
    const proxy = await listening(meet);
    const refused = {
      code: 'ProxyRefused',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    };
    await expect(tunnel(proxy.url, { host: 'hub.example', port: 443 })).rejects.toMatchObject(refused);
    const asked = outboundFetch({ https_proxy: proxy.url.href })('https://hub.example/api');
    await expect(asked).rejects.toMatchObject({ cause: refused });
    expect(proxy.connections()).toBe(2);
  });
});

it('is given up, and named, when it says nothing', async () => {
  const proxy = await listening(() => undefined);
  await expect(tunnel(proxy.url, { host: 'hub.example', port: 443 }, 50)).rejects.toMatchObject({
    code: 'ProxyRefused',
    message: expect.stringContaining('says nothing for 0.05 s'),
  });
});

function answering(status: string): (socket: Socket) => void {
  return (socket) => socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
}
