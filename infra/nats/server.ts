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
 *
 * `max_file_store`: what is free counts when it is written. The default, three quarters of what is free at the start, would
 * refuse streams for good to a server that was started on an all but full disk.
 */
export function writeNatsConfig({ configFile, storeDir, port, monitorPort, token }: NatsServerOptions): void {
  const text = `# Written by petrel at every start of the server.
listen: "${loopback}:${port}"
http: "${loopback}:${monitorPort}"
authorization { token: "${token}" }
jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "5s", max_file_store: 1TB }
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
  return (await askHealth(monitorPort))?.ok ?? false; // not yet: asked again until the caller's bound
}

/**
 * What the server says when it could not write: from then on it refuses every message of that stream, also when the disk
 * has room again, until it is started anew.
 */
export async function natsWriteError(monitorPort: number): Promise<string | undefined> {
  const text = (await askHealth(monitorPort))?.text ?? '';
  return /write error|no space left/i.test(text) ? text : undefined;
}

/** Undefined when nobody answers. */
async function askHealth(monitorPort: number): Promise<{ readonly ok: boolean; readonly text: string } | undefined> {
  try {
    const response = await fetch(`http://${loopback}:${monitorPort}/healthz`, { signal: AbortSignal.timeout(2_000) });
    return { ok: response.ok, text: await response.text() };
  } catch {
    return undefined;
  }
}
