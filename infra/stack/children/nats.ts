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
    // Acknowledged messages that it could not take out would come back with it, as if they still waited. Those that do wait are published again.
    repair: () => rmSync(join(options.storeDir, 'jetstream'), { recursive: true, force: true }),
    readyTimeoutMs: 60_000,
    stopGraceMs: 5_000,
  };
}

/** After a disk was full, and only when it has room again: the server is not asked before, nor started for nothing. */
async function refusesMessages(storeDir: string, health: NatsHealth): Promise<string | undefined> {
  if (!existsSync(storeDir) || (await freeBytes(storeDir)) < 2 * ballastBytes) return undefined;
  return await health.writeError();
}
