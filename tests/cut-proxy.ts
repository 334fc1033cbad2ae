/**
 * A TCP proxy on loopback whose network can be cut: bytes stop in both directions, and no side is told. It may also be
 * long: bytes come later, and some of them much later, as after a packet was lost and sent again.
 */
import { createServer, connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';

export interface CutProxy {
  readonly port: number;
  /** Cuts the connection: nothing passes from now on; connections stay open, and new ones are accepted and silent. */
  cut(): void;
  /** What waited passes. A side that closed its connection during the cut closes the other one now. */
  mend(): void;
  close(): Promise<void>;
}

/** A link that is no loopback. */
export interface LongLink {
  /** One way, in ms. */
  readonly delayMs: number;
  /** Share of the pieces that are lost once. Default: 0. */
  readonly loss?: number;
  /** Chooses these. Default: 1. */
  readonly seed?: number;
}

/** The least time after which TCP sends a lost packet again, beside the round trip: Linux's minimum. */
const againMs = 200;

/** Forwards connections to this port of loopback. */
export async function startCutProxy(target: number, link: LongLink = { delayMs: 0 }): Promise<CutProxy> {
  const ways = new Set<Way>();
  const delayOf = delays(link);
  let isCut = false;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true });
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      const way = new Way(from, to, delayOf, () => ways.delete(way));
      ways.add(way);
      if (isCut) way.shut();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
      for (const way of ways) way.shut();
    },
    mend: () => {
      isCut = false;
      for (const way of ways) way.open();
    },
    close: async () => {
      for (const way of ways) way.end();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The time that each next piece takes, in ms. */
function delays({ delayMs, loss = 0, seed = 1 }: LongLink): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 < loss ? 3 * delayMs + againMs : delayMs;
  };
}

/** What comes from a socket: bytes, its end, or that it was closed. */
type Piece = Uint8Array | 'end' | 'close';

/** One direction of a connection. Pieces keep their order: what was lost holds up what follows it. */
class Way {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #over: () => void;
  readonly #waiting: { readonly piece: Piece; readonly dueAt: number }[] = [];
  #isShut = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, delayOf: () => number, over: () => void) {
    this.#from = from;
    this.#to = to;
    this.#over = over;
    const come = (piece: Piece) => {
      const last = this.#waiting.at(-1)?.dueAt ?? 0;
      this.#waiting.push({ piece, dueAt: Math.max(last, performance.now() + delayOf()) });
      this.#pass();
    };
    from.on('data', come);
    from.on('end', () => come('end'));
    from.on('error', () => {}); // its close follows
    from.on('close', () => come('close'));
    to.on('drain', () => this.#isShut || from.resume());
  }

  open(): void {
    this.#isShut = false;
    this.#from.resume();
    this.#pass();
  }

  shut(): void {
    this.#isShut = true;
    this.#from.pause();
    clearTimeout(this.#timer);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#isShut = true;
    this.#from.destroy();
    this.#over();
  }

  /** Passes what is due, and comes back for the rest. */
  #pass(): void {
    clearTimeout(this.#timer);
    for (let next = this.#waiting[0]; next !== undefined && !this.#isShut; next = this.#waiting[0]) {
      const leftMs = next.dueAt - performance.now();
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#pass(), Math.ceil(leftMs));
        return;
      }
      this.#waiting.shift();
      this.#give(next.piece);
    }
  }

  #give(piece: Piece): void {
    if (piece === 'close') {
      this.#to.destroy();
      return this.#over();
    }
    if (this.#to.destroyed || this.#to.writableEnded) return;
    if (piece === 'end') this.#to.end();
    else if (!this.#to.write(piece)) this.#from.pause();
  }
}
