/** TCP ports and addresses of servers. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, isIP } from 'node:net';

export const loopback = '127.0.0.1';

/** The host as a URL and the configuration of a server have it. */
export const hostInUrl = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host);

// Below the range from which Linux takes the source ports of outgoing connections (32768 and up). A client could take a
// server's port inside that range while the server restarts, even a client that is trying to reach it.
const lowestPort = 15_000;
const highestPort = 32_000;

/**
 * `count` different free ports, chosen at random. Another program may take one before it is used, so the caller checks
 * again then.
 */
export async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = randomInt(lowestPort, highestPort);
    if (await isPortFree(port)) found.add(port);
  }
  return [...found];
}

/** True when no program listens on the port, so that a server can be started there. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer();
  server.listen(port, loopback);
  try {
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}

/** True when a server accepts connections on the port. */
export function acceptsConnections(port: number, host = loopback): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
