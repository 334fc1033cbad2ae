/** nats-server with JetStream: its configuration, and how one knows that it serves. */
import { randomBytes } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import { loopback } from '../ports.ts';

export interface NatsServerOptions {
  readonly configFile: string;
  readonly storeDir: string;
  readonly port: number;
  readonly monitorPort: number;
  readonly token: string;
}

/** A secret that only readers of the 0600 configuration know. */
export function newNatsToken(): string {
  return randomBytes(24).toString('hex');
}

/**
 * Writes the configuration, 0600 since it holds the token.
 *
 * `sync_interval`: a killed server loses nothing, what was written is in the page cache. A power cut may lose the last
 * seconds of job messages, which the waiting activities publish again. So 5 s, where the default is 2 minutes.
 */
export function writeNatsConfig({ configFile, storeDir, port, monitorPort, token }: NatsServerOptions): void {
  const text = `# Written by petrel at every start of the server.
listen: "${loopback}:${port}"
http: "${loopback}:${monitorPort}"
authorization { token: "${token}" }
jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "5s" }
max_payload: 8MB
write_deadline: "10s"
`;
  writeFileSync(`${configFile}.tmp`, text, { mode: 0o600 });
  renameSync(`${configFile}.tmp`, configFile);
}

export function natsArgs({ configFile }: Pick<NatsServerOptions, 'configFile'>): string[] {
  return ['--config', configFile];
}

/** True once the server is healthy and JetStream has read its streams back. */
export async function isNatsReady(monitorPort: number): Promise<boolean> {
  try {
    const response = await fetch(`http://${loopback}:${monitorPort}/healthz`, { signal: AbortSignal.timeout(2_000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false; // not yet: asked again until the caller's bound
  }
}
