/**
 * The certificate with which a stack's NATS server is known to machines that join: signed by a certificate made for it
 * alone.
 */
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { z } from 'zod';

/** PEM texts. `ca` is what the clients trust; its private key is not kept, so nobody can sign another certificate. */
export const serverCertificate = z.object({
  /** The IP address or name for which it is valid. */
  host: z.string(),
  ca: z.string(),
  certificate: z.string(),
  key: z.string(),
  /** ISO time. */
  until: z.string(),
});
export type ServerCertificate = Readonly<z.infer<typeof serverCertificate>>;

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 24 * 3600 * 1000;
const validMs = 5 * 365 * dayMs;
/** The clock of a machine that joins may be behind. */
const earlierMs = dayMs;

export async function newServerCertificate(host: string, now = Date.now()): Promise<ServerCertificate> {
  await import('reflect-metadata'); // which @peculiar/x509 expects
  const x509 = await import('@peculiar/x509');
  const { subtle } = webcrypto;
  const [signing, serving] = await Promise.all(
    [1, 2].map(() => subtle.generateKey(algorithm, true, ['sign', 'verify'])),
  );
  if (signing === undefined || serving === undefined) throw new Error('two keys were made');
  const validity = { notBefore: new Date(now - earlierMs), notAfter: new Date(now + validMs) };
  const ca = await x509.X509CertificateGenerator.createSelfSigned(
    {
      ...validity,
      name: 'CN=petrel stack',
      signingAlgorithm: algorithm,
      keys: signing,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      ],
    },
    webcrypto,
  );
  const certificate = await x509.X509CertificateGenerator.create(
    {
      ...validity,
      subject: 'CN=petrel NATS server',
      issuer: ca.subject,
      signingAlgorithm: algorithm,
      signingKey: signing.privateKey,
      publicKey: serving.publicKey,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }]),
      ],
    },
    webcrypto,
  );
  return {
    host,
    ca: ca.toString('pem'),
    certificate: certificate.toString('pem'),
    key: x509.PemConverter.encode(await subtle.exportKey('pkcs8', serving.privateKey), 'PRIVATE KEY'),
    until: validity.notAfter.toISOString(),
  };
}
