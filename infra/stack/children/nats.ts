/** The NATS server of the stack. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { serverEnvironment } from '../../environment.ts';
import type { Tool } from '../../home.ts';
import { NatsHealth } from '../../nats/health.ts';
import { natsArgs, writeNatsConfig } from '../../nats/server.ts';
import { ballastBytes } from '../../store/ballast.ts';
import { freeBytes } from '../../../log/objects/free-space.ts';
import type { ChildSpec } from '../child-spec.ts';
import { natsFolder, natsUrl, readEndpoints, stackFolder } from '../state.ts';
import type { Endpoints } from '../state.ts';

export function natsChild(home: string, tool: Tool, endpoints: Endpoints): ChildSpec {
  const { natsPort, nats, tls } = endpoints;
  const options = {
    configFile: join(stackFolder(home), 'nats.conf'),
    storeDir: natsFolder(home),
    port: natsPort,
    authority: nats.authority,
    tls,
  };
  const health = new NatsHealth({ url: natsUrl(endpoints), system: nats.system, ca: tls?.ca });
  return {
    name: 'nats',
    kind: 'nats',
    command: tool.path,
    args: natsArgs(options),
    env: serverEnvironment(stackFolder(home)),
    isolated: true,
    prepare: () => {
      removeForeignStreams(options.storeDir, nats.authority.control.id);
      // A command may have revoked a machine since the supervisor started.
      writeNatsConfig({ ...options, authority: readEndpoints(home)?.nats?.authority ?? options.authority });
    },
    isReady: async () => (await health.isReady()) || health.silence,
    isStuck: () => refusesMessages(options.storeDir, health),
    // A server that could not delete acknowledged messages would bring them back as if they were still queued. So its
    // files are removed; jobs that are still needed are published again.
    repair: () => rmSync(join(options.storeDir, 'jetstream'), { recursive: true, force: true }),
    readyTimeoutMs: 60_000,
    stopGraceMs: 5_000,
  };
}

/**
 * The streams of an account that this server does not know, such as the one of an older build, which had no accounts,
 * would fill the disk for ever. Jobs that are still needed are published again.
 */
function removeForeignStreams(storeDir: string, account: string): void {
  const folder = join(storeDir, 'jetstream');
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder))
    if (name !== account) rmSync(join(folder, name), { recursive: true, force: true });
}

/** Polls the health after the disk was full, only when there is space again, since a restart would fail before. */
async function refusesMessages(storeDir: string, health: NatsHealth): Promise<string | undefined> {
  if (!existsSync(storeDir) || (await freeBytes(storeDir)) < 2 * ballastBytes) return undefined;
  return await health.writeError();
}
