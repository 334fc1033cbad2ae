/** Whether this machine has an address now: a laptop changes networks, a lease ends, a VPN is closed. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { errorToJson } from '../../core/errors.ts';

/** The addresses that hosts had when a server could listen there. */
const lastAddresses = new Map<string, string>();

/** Errors of this process or machine, which say nothing about an address. */
const noRoom: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM']);

/**
 * Why no server of this machine can listen at the host; undefined: one can. A name server that does not answer says
 * nothing about a name: then the name's last address decides.
 */
export async function whyNotHere(host: string): Promise<string | undefined> {
  const server = createServer();
  server.listen(0, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRNOTAVAIL') return `this machine does not have the address ${host} now`;
    if (code !== undefined && noRoom.has(code)) return undefined;
    const last = lastAddresses.get(host);
    if (code === 'EAI_AGAIN' && last !== undefined && last !== host) return await whyNotHere(last);
    if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name ${host} has no address here now`;
    return errorToJson(error).message;
  }
  lastAddresses.set(host, (server.address() as AddressInfo).address);
  server.close();
  await once(server, 'close');
  return undefined;
}

/** The addresses at which other machines may reach this one. */
export const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((all) =>
    (all ?? [])
      .filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
      .map(({ address }) => address),
  );
