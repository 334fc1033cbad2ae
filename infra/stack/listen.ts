/** The address at which the NATS server listens when workers of other machines may join: `petrel up --listen`. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { InvalidInputError } from '../../core/errors.ts';
import { newServerCertificate } from '../nats/access/certificate.ts';
import type { ServerCertificate } from '../nats/access/certificate.ts';

export const listenAddress = z.object({
  /** IP address or name of this machine, at which workers reach it. */
  host: z.string(),
  /** Absent: the port that the server has. */
  port: z.int().optional(),
});
export type ListenAddress = Readonly<z.infer<typeof listenAddress>>;

/** Addresses that say where a server listens, but not where others find it. */
const everywhere: ReadonlySet<string> = new Set(['0.0.0.0', '::', '*']);
const pattern = /^(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^:\s/]+))(?::(?<number>[^/]*))?$/;
const port = /^[1-9]\d{0,4}$/;

/** `10.0.0.5`, `10.0.0.5:4222`, `gpu1.lab:4222`, `[fd00::5]:4222`. Throws InvalidInputError for other text. */
export function parseListenAddress(text: string): ListenAddress {
  const parts = isIP(text) === 6 ? { plain: text } : pattern.exec(text)?.groups;
  const { bracketed, plain, number } = parts ?? {};
  const host = bracketed ?? plain;
  const hint = 'petrel up --listen 10.0.0.5:4222, with an address at which the workers reach this machine';
  if (host === undefined || (bracketed !== undefined && isIP(bracketed) !== 6))
    throw new InvalidInputError(`--listen: expected an address of this machine, got "${text}"`, {
      hint,
    });
  if (everywhere.has(host))
    throw new InvalidInputError(`--listen: expected one address at which the workers reach this machine, got ${host}`, {
      hint,
    });
  if (number === undefined) return { host };
  if (!port.test(number) || Number(number) > 65_535)
    throw new InvalidInputError(`--listen: expected a port from 1 to 65535, got "${number}"`, { hint });
  return { host, port: Number(number) };
}

/** The certificate for this host: the kept one, or a new one when that is for another host or ends within 30 days. */
export async function certificateFor(
  host: string,
  kept: ServerCertificate | undefined,
  now = Date.now(),
): Promise<ServerCertificate> {
  const isGood = kept?.host === host && Date.parse(kept.until) - now > 30 * 24 * 3600 * 1000;
  return isGood ? kept : newServerCertificate(host, now);
}
