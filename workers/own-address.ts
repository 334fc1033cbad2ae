/** The address from which this machine reaches another one. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { lookup } from 'node:dns/promises';

/** Asks the system's routes, and sends nothing. Resolves with undefined when there is no route. */
export async function addressTowards(url: string): Promise<string | undefined> {
  const { hostname, port } = new URL(url);
  try {
    const { address } = await lookup(hostname.replace(/^\[|\]$/g, ''));
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    try {
      socket.connect(Number(port) || 4222, address);
      await once(socket, 'connect');
      return socket.address().address;
    } finally {
      socket.close();
    }
  } catch {
    return undefined;
  }
}
