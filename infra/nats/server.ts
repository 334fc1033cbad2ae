/** nats-server with JetStream: writes its configuration. (health.ts asks for its health.) */
import { renameSync, writeFileSync } from 'node:fs';
import { loopback } from '../ports.ts';
import type { NatsAuthority } from './authority.ts';

export interface NatsServerOptions {
  readonly configFile: string;
  readonly storeDir: string;
  readonly port: number;
  readonly authority: NatsAuthority;
}

/**
 * Writes the configuration. It holds public keys only. There is no monitoring port, because NATS serves that port
 * without authentication.
 *
 * `sync_interval`: a killed server loses nothing, because written data is in the page cache. A power cut may lose the
 * job messages of the last seconds, and the waiting activities publish those again. So 5 s instead of the default of 2
 * minutes.
 *
 * `ping_interval`: a client that does not answer, because its machine lost power or the network, counts as gone after 12 s.
 *
 * `max_file_store`: the disk space is checked at each write instead. The default, three quarters of the space that is
 * free at the start, would make a server that starts on an almost full disk refuse streams for good.
 */
export function writeNatsConfig({ configFile, storeDir, port, authority }: NatsServerOptions): void {
  const text = `# Written by petrel at every start of the server.
listen: "${loopback}:${port}"
operator: ${authority.operatorJwt}
system_account: ${authority.system.id}
resolver: MEMORY
resolver_preload { ${[authority.control, authority.workers, authority.system].map(({ id, jwt }) => `${id}: ${jwt}`).join(', ')} }
jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "5s", max_file_store: 1TB }
max_payload: 8MB
write_deadline: "10s"
ping_interval: "4s"
ping_max: 2
`;
  writeFileSync(`${configFile}.tmp`, text, { mode: 0o600 });
  renameSync(`${configFile}.tmp`, configFile);
}

/** The port and the account are on the command line too, so that `ps` distinguishes servers with other settings. */
export function natsArgs({ configFile, port, authority }: Omit<NatsServerOptions, 'storeDir'>): string[] {
  return ['--config', configFile, '--port', String(port), '--name', authority.control.id];
}
