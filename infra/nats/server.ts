/** nats-server with JetStream: writes its configuration. (health.ts asks for its health.) */
import { renameSync, writeFileSync } from 'node:fs';
import { hostInUrl, loopback } from '../ports.ts';
import type { NatsAuthority } from './access/authority.ts';
import type { ServerCertificate } from './access/certificate.ts';

export interface NatsServerOptions {
  readonly configFile: string;
  readonly storeDir: string;
  readonly port: number;
  readonly authority: NatsAuthority;
  /** Other machines may reach the server at its host. Absent: it listens on loopback, without encryption. */
  readonly tls?: ServerCertificate | undefined;
}

const filesOf = (configFile: string) => ({ certificate: `${configFile}.crt`, key: `${configFile}.key` });
const hostOf = (tls: ServerCertificate | undefined): string => tls?.host ?? loopback;

/**
 * Writes the configuration. It holds public keys only. There is no monitoring port, because NATS serves that port
 * without authentication.
 *
 * `sync_interval`: a killed server loses nothing, because written data is in the page cache. A power cut may lose the
 * job messages of the last seconds, and the waiting activities publish those again. So 5 s instead of the default of 2
 * minutes.
 *
 * `ping_interval`: a client that says nothing, because its machine lost power or the network, counts as gone after 10
 * to 12 s. The server asks at the end of each interval without a word, and gives up after `ping_max` questions. Many
 * short intervals keep that time near its bound; a process that stands still for less than 10 s keeps its connection.
 * Workers that say they are present each second are never asked (docs/decisions/0024).
 *
 * `max_file_store`: the disk space is checked at each write instead. The default, three quarters of the space that is
 * free at the start, would make a server that starts on an almost full disk refuse streams for good.
 */
export function writeNatsConfig({ configFile, storeDir, port, authority, tls }: NatsServerOptions): void {
  const files = filesOf(configFile);
  if (tls !== undefined) {
    replaceFile(files.certificate, tls.certificate);
    replaceFile(files.key, tls.key);
  }
  const text = `# Written by petrel at every start of the server.
listen: "${hostInUrl(hostOf(tls))}:${port}"
${tls === undefined ? '' : `tls { cert_file: ${JSON.stringify(files.certificate)}, key_file: ${JSON.stringify(files.key)} }`}
operator: ${authority.operatorJwt}
system_account: ${authority.system.id}
resolver: MEMORY
resolver_preload { ${[authority.control, authority.workers, authority.system].map(({ id, jwt }) => `${id}: ${jwt}`).join(', ')} }
jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "5s", max_file_store: 1TB }
max_payload: 8MB
write_deadline: "10s"
ping_interval: "2s"
ping_max: 4
`;
  replaceFile(configFile, text);
}

function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.tmp`, text, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/** The address and the account are on the command line too, so that `ps` distinguishes servers with other settings. */
export function natsArgs({ configFile, port, authority, tls }: Omit<NatsServerOptions, 'storeDir'>): string[] {
  const address = ['--addr', hostOf(tls), '--port', String(port)];
  return ['--config', configFile, ...address, '--name', `${authority.control.id}-${authority.exchange}`];
}
