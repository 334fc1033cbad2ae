/** Serves the weights that this process has in memory, or gets at this moment, to others that want the same ones. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readWeightsPath } from '../../core/wire/weights.ts';
import { isMessageProof } from '../../infra/store/result-proof.ts';
import type { ReadableWeights } from './growing-weights.ts';

export interface HolderPorts {
  /** The secret of a run, if this process has worked for it. */
  readonly secretOf: (runId: string) => string | undefined;
  /** Resolves with undefined when they are not here, and do not come soon. */
  readonly weightsOf: (runId: string, weights: string) => Promise<ReadableWeights | undefined>;
}

/** Elements of one piece: a few milliseconds of copying. */
const pieceElements = 1 << 20;
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
  const found = await ports.weightsOf(wanted.runId, wanted.weights);
  const elements = await found?.elements();
  if (found === undefined || elements === undefined || wanted.first > elements) return refuse(answer, 404);
  answer.writeHead(200, { 'content-length': (elements - wanted.first) * Float32Array.BYTES_PER_ELEMENT });
  for (let at = wanted.first; at < elements; ) {
    const ready = await found.beyond(at);
    if (ready === undefined || answer.destroyed) return void answer.destroy();
    const piece = new Float32Array(Math.min(pieceElements, ready - at));
    await found.read(at, piece);
    at += piece.length;
    if (!answer.write(new Uint8Array(piece.buffer))) await Promise.race([once(answer, 'drain'), once(answer, 'close')]);
  }
  answer.end();
}

function refuse(answer: ServerResponse, status: number): void {
  answer.writeHead(status).end();
}
