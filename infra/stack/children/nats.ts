/** The NATS server of the stack. */
import { join } from 'node:path';
import type { Tool } from '../../home.ts';
import { isNatsReady, natsArgs, writeNatsConfig } from '../../nats/server.ts';
import type { ChildSpec } from '../child-spec.ts';
import { stackFolder } from '../state.ts';
import type { Endpoints } from '../state.ts';

export function natsChild(home: string, tool: Tool, { natsPort, monitorPort, natsToken }: Endpoints): ChildSpec {
  const options = {
    configFile: join(stackFolder(home), 'nats.conf'),
    storeDir: join(stackFolder(home), 'nats'),
    port: natsPort,
    monitorPort,
    token: natsToken,
  };
  return {
    name: 'nats',
    kind: 'nats',
    command: tool.path,
    args: natsArgs(options),
    env: {},
    prepare: () => writeNatsConfig(options),
    isReady: () => isNatsReady(monitorPort),
    readyTimeoutMs: 60_000,
    stopGraceMs: 5_000,
  };
}
