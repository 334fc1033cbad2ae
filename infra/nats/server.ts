/** nats-server with JetStream: its configuration. health.ts asks how it is. */
import { renameSync, writeFileSync } from 'node:fs';
import { loopback } from '../ports.ts';
import { publicNkey } from './nkey.ts';

export interface NatsServerOptions {
  readonly configFile: string;
  readonly storeDir: string;
  readonly port: number;
  /** Of the stack's processes and commands: see `newNatsKey`. */
  readonly key: string;
  /** Of whoever asks how the server is. */
  readonly systemKey: string;
}

/**
 * Writes the configuration. It holds public keys only, and no port for monitoring, which would ask nobody for a key.
 *
 * `sync_interval`: a killed server loses nothing, what was written is in the page cache. A power cut may lose the last
 * seconds of job messages, which the waiting activities publish again. So 5 s, where the default is 2 minutes.
 *
 * `max_file_store`: what is free counts when it is written. The default, three quarters of what is free at the start, would
 * refuse streams for good to a server that was started on an all but full disk.
 */
export function writeNatsConfig({ configFile, storeDir, port, key, systemKey }: NatsServerOptions): void {
  const text = `# Written by petrel at every start of the server.
listen: "${loopback}:${port}"
authorization { users: [ { nkey: "${publicNkey(key)}" } ] }
accounts { $SYS { users: [ { nkey: "${publicNkey(systemKey)}" } ] } }
jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "5s", max_file_store: 1TB }
max_payload: 8MB
write_deadline: "10s"
`;
  writeFileSync(`${configFile}.tmp`, text, { mode: 0o600 });
  renameSync(`${configFile}.tmp`, configFile);
}

/** The port and the public key stand here too, so that a server with others is known by its command line. */
export function natsArgs({ configFile, port, key }: Pick<NatsServerOptions, 'configFile' | 'port' | 'key'>): string[] {
  return ['--config', configFile, '--port', String(port), '--name', publicNkey(key)];
}
