/**
 * A program takes the port of the message queue while its server is down. What can it learn from clients that
 * reconnect?
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';
import { portsOf } from './ports.ts';

/** Fields of the output of `petrel up --json`. */
interface Stack {
  readonly nats: { readonly url: string };
  readonly children: readonly { readonly name: string; readonly pid: number }[];
}

const user = new PetrelUser();
const natsPid = ({ children }: Stack) => Number(children.find(({ name }) => name === 'nats')?.pid);
let thief: Server | undefined;
let stack: Stack;
beforeAll(async () => {
  stack = (await user.petrel('up', '--json')).json<Stack>();
});
afterAll(async () => {
  thief?.close();
  await user.remove();
});

it('the server of the message queue does not serve its metrics', async () => {
  const answers = await Promise.all(
    portsOf(natsPid(stack)).map((port) =>
      fetch(`http://127.0.0.1:${port}/connz?subs=1`).then(
        ({ status }) => status,
        () => 'no HTTP',
      ),
    ),
  );
  expect(answers).not.toContain(200);
});

it('what a client sends to a false server gives no access to the real one', async () => {
  const { pid: supervisor } = JSON.parse(readFileSync(join(user.home, 'stack/stack.json'), 'utf8')) as { pid: number };
  const port = Number(new URL(stack.nats.url).port);
  process.kill(supervisor, 'SIGSTOP'); // otherwise it would start the server again
  process.kill(natsPid(stack), 'SIGKILL');
  thief = await takePort(port);
  const said = await firstConnect(thief);
  process.kill(supervisor, 'SIGCONT');

  const back = (await user.petrel('up', '--json')).json<Stack>();
  expect(back.nats.url).not.toBe(stack.nats.url);
  expect(await answerTo(said, Number(new URL(back.nats.url).port))).toMatch(/^-ERR 'Authorization/);
});

/** Listens on the port as soon as it is free. */
async function takePort(port: number): Promise<Server> {
  for (;;) {
    const server = createServer();
    const listening = once(server.listen(port, '127.0.0.1'), 'listening');
    if (
      await listening.then(
        () => true,
        () => false,
      )
    )
      return server;
  }
}

/** The CONNECT line of the first client: it contains all credentials that a client sends. */
async function firstConnect(server: Server): Promise<string> {
  const [socket] = (await once(server, 'connection')) as [Socket];
  socket.on('error', () => {});
  const info = { server_id: 'THIEF', version: '2.15.1', proto: 1, max_payload: 1_048_576, auth_required: true };
  socket.write(`INFO ${JSON.stringify({ ...info, nonce: 'AAAAAAAAAAAAAAA' })}\r\n`);
  for await (const line of createInterface({ input: socket })) if (line.startsWith('CONNECT ')) return line;
  throw new Error('the client said nothing of itself');
}

/** The answer of the real server to a client that sends the same line. */
async function answerTo(said: string, port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  for await (const line of createInterface({ input: socket })) {
    if (line.startsWith('INFO ')) socket.write(`${said}\r\nPING\r\n`);
    else if (line !== '+OK') return line;
  }
  throw new Error('the server said nothing');
}
