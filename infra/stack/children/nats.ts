/** The NATS server of the stack. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Tool } from '../../home.ts';
import { NatsHealth } from '../../nats/health.ts';
import { natsArgs, writeNatsConfig } from '../../nats/server.ts';
import { loopback } from '../../ports.ts';
import { ballastBytes } from '../../store/ballast.ts';
import { freeBytes } from '../../store/free-space.ts';
import type { ChildSpec } from '../child-spec.ts';
import { natsFolder, stackFolder } from '../state.ts';
import type { Endpoints } from '../state.ts';

export function natsChild(home: string, tool: Tool, { natsPort, natsKey, natsSystemKey }: Endpoints): ChildSpec {
  const options = {
    configFile: join(stackFolder(home), 'nats.conf'),
    storeDir: natsFolder(home),
    port: natsPort,
    key: natsKey,
    systemKey: natsSystemKey,
  };
  const health = new NatsHealth({ url: `nats://${loopback}:${natsPort}`, systemKey: natsSystemKey });
  return {
    name: 'nats',
    kind: 'nats',
    command: tool.path,
    args: natsArgs(options),
    env: {},
    prepare: () => writeNatsConfig(options),
    isReady: () => health.isReady(),
    isStuck: () => refusesMessages(options.storeDir, health),
    // A server that could not delete acknowledged messages would bring them back as if they were still queued. So its
    // files are removed; jobs that are still needed are published again.
    repair: () => rmSync(join(options.storeDir, 'jetstream'), { recursive: true, force: true }),
    readyTimeoutMs: 60_000,
    stopGraceMs: 5_000,
  };
}

/** After the disk was full: polled only when there is space again, since a restart would fail before. */
async function refusesMessages(storeDir: string, health: NatsHealth): Promise<string | undefined> {
  if (!existsSync(storeDir) || (await freeBytes(storeDir)) < 2 * ballastBytes) return undefined;
  return await health.writeError();
}
