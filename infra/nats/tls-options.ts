/** The encryption of a client's connection. */
import type { TlsOptions } from '@nats-io/nats-core';

/**
 * Empty for a server without encryption. `host` reaches Node's TLS: the client itself names the server only where it
 * has a domain name, and Node would compare the certificate of an IP address with `localhost`.
 */
export function tlsOptions({ url, ca }: { readonly url: string; readonly ca?: string | undefined }): {
  tls?: TlsOptions;
} {
  if (ca === undefined) return {};
  const host = new URL(url.split(',')[0] ?? url).hostname.replace(/^\[(.*)\]$/, '$1');
  // A user's NODE_TLS_REJECT_UNAUTHORIZED=0 is about other servers.
  const tls: TlsOptions & { readonly host: string; readonly rejectUnauthorized: true } = {
    ca,
    host,
    rejectUnauthorized: true,
  };
  return { tls };
}
