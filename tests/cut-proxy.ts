/** A TCP proxy on loopback whose network can be cut: bytes stop in both directions, and no side is told. */
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

/** Forwards connections to this port of loopback. */
export async function startCutProxy(target: number): Promise<CutProxy> {
  const ways = new Set<Way>();
  let isCut = false;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    for (const way of [new Way(client, upstream), new Way(upstream, client)]) {
      ways.add(way);
      if (!isCut) way.open();
      way.from.on('error', () => {}); // its close follows
      way.from.on('close', () => {
        if (isCut) return; // a closing packet does not pass a cut either
        ways.delete(way);
        way.to.destroy();
      });
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
      for (const { from } of ways) from.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** One direction of a connection. A pipe that only pauses its source would go on when its target drains. */
class Way {
  readonly from: Socket;
  readonly to: Socket;

  constructor(from: Socket, to: Socket) {
    this.from = from;
    this.to = to;
  }

  open(): void {
    if (this.from.destroyed) this.to.destroy();
    else this.from.pipe(this.to);
  }

  shut(): void {
    this.from.unpipe(this.to);
    this.from.pause();
  }
}
