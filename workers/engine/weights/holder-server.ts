/** Serves the weights that this process has in memory, or gets at this moment, to others that want the same ones. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readWeightsPath } from '../../../core/wire/weights.ts';
import { isMessageProof } from '../../../log/objects/result-proof.ts';
import type { ReadableWeights } from './growing-weights.ts';

export interface HolderPorts {
  /** The secret of a run, if this process has worked for it. */
  readonly secretOf: (runId: string) => string | undefined;
  /** Resolves with undefined when they are not here, and do not come soon. */
  readonly weightsOf: (runId: string, publication: string) => Promise<ReadableWeights | undefined>;
}

/** Bytes of one piece: less than a millisecond of copying. */
const pieceBytes = 1 << 20;
const mostConnections = 64;

/** Resolves with the URL, when it listens on any free port of the address. */
export async function serveWeights(address: string, ports: HolderPorts): Promise<string> {
  const server = createServer((asked, answer) => {
    serve(asked, answer, ports).catch(() => answer.destroy()); // it gets them elsewhere
  });
  server.maxConnections = mostConnections;
  server.listen(0, address);
  await once(server, 'listening');
  server.unref();
  const { port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

async function serve(asked: IncomingMessage, answer: ServerResponse, ports: HolderPorts): Promise<void> {
  const path = asked.url ?? '';
  const wanted = readWeightsPath(path);
  if (asked.method !== 'GET' || wanted === undefined) return refuse(answer, 400);
  const secret = ports.secretOf(wanted.runId);
  if (secret === undefined || !isMessageProof(secret, path, asked.headers.authorization ?? ''))
    return refuse(answer, 403);
  const found = await ports.weightsOf(wanted.runId, wanted.publication);
  const bytes = await found?.bytes();
  if (found === undefined || bytes === undefined || wanted.firstByte > bytes) return refuse(answer, 404);
  answer.writeHead(200, { 'content-length': bytes - wanted.firstByte });
  // Two buffers in turn: one is filled while the other is sent.
  const buffers = [0, 1].map(() => new Uint8Array(pieceBytes));
  let sent: Promise<void> = Promise.resolve();
  for (let at = wanted.firstByte, i = 0; at < bytes; i++) {
    const ready = await found.beyond(at);
    if (ready === undefined) throw new Error('these weights are not in memory any more');
    const piece = (buffers[i % 2] as Uint8Array).subarray(0, Math.min(pieceBytes, ready - at));
    await found.read(at, piece);
    await sent;
    sent = send(answer, piece);
    sent.catch(() => {}); // the next turn has the error
    at += piece.length;
  }
  await sent;
  answer.end();
}

/** Resolves when the bytes are with the system, and may change. */
const send = (answer: ServerResponse, bytes: Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => answer.write(bytes, (error) => (error ? reject(error) : resolve())));

function refuse(answer: ServerResponse, status: number): void {
  answer.writeHead(status).end();
}
