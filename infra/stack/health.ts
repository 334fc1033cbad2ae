/** The health of the local stack, for `petrel doctor` and `petrel status`. */
import { buildId, readTools } from '../home.ts';
import { isNatsReady } from '../nats/health.ts';
import { acceptsConnections } from '../ports.ts';
import { temporalRefusal } from '../temporal/server.ts';
import { logFile } from './logs.ts';
import { isAlive } from './process.ts';
import { requireServing } from './serving.ts';
import type { OwnedByOthers } from './servers.ts';
import { readStackFile, stackFile, stackFolder } from './state.ts';
import type { ChildState, StackInfo } from './state.ts';

export interface StackHealth {
  /** `down`: no process runs. `degraded`: see `problems`. */
  readonly state: 'up' | 'degraded' | 'down';
  readonly supervisor: { readonly pid: number; readonly alive: boolean } | undefined;
  readonly temporal: { readonly address: string; readonly serving: boolean } | undefined;
  readonly nats: { readonly url: string; readonly serving: boolean } | undefined;
  readonly children: readonly ChildState[];
  /** One sentence per problem, with what to do. */
  readonly problems: readonly string[];
}

/** Asks the servers themselves, not only the supervisor. Never throws for an unhealthy stack. */
export async function stackHealth(home: string): Promise<StackHealth> {
  const stack = readStackFile(stackFile(home));
  if (!stack)
    return { state: 'down', supervisor: undefined, temporal: undefined, nats: undefined, children: [], problems: [] };
  const alive = isAlive(stack);
  const [temporalServes, natsServes] = await Promise.all([
    isTemporalServing(home, stack.temporal),
    isNatsServing(stack.nats),
  ]);
  const problems = [
    ...(alive ? [] : ['the supervisor is gone: `petrel up` restarts it, and it adopts the running processes']),
    ...(temporalServes
      ? []
      : [`Temporal does not answer at ${stack.temporal.address}: see ${whereOf(home, 'temporal', stack.temporal)}`]),
    ...(natsServes ? [] : [`NATS does not answer at ${stack.nats.url}: see ${whereOf(home, 'nats', stack.nats)}`]),
    ...stack.children.flatMap((child) => childProblem(home, child)),
    ...(stack.build === buildId()
      ? []
      : ['the stack runs an older build of petrel: `petrel up` replaces its processes']),
  ];
  return {
    state: problems.length === 0 ? 'up' : alive || temporalServes || natsServes ? 'degraded' : 'down',
    supervisor: { pid: stack.pid, alive },
    temporal: {
      address: stack.temporal.address,
      serving: temporalServes,
    },
    nats: { url: stack.nats.url, serving: natsServes },
    children: stack.children,
    problems,
  };
}

/** A stack of an older build has no credential of the system account. Then only the port can be checked. */
async function isNatsServing({ system, ofOthers, ...nats }: StackInfo['nats']): Promise<boolean> {
  if (ofOthers) return serves({ nats: { ...nats, replicas: nats.replicas ?? 1 } });
  return system === undefined ? acceptsConnections(Number(new URL(nats.url).port)) : isNatsReady({ ...nats, system });
}

async function isTemporalServing(home: string, { ofOthers, ...temporal }: StackInfo['temporal']): Promise<boolean> {
  if (ofOthers) return serves({ temporal: { ...temporal, namespace: temporal.namespace ?? 'default' } });
  const port = Number(temporal.address.split(':')[1]);
  try {
    return (await temporalRefusal(readTools(home).temporal.path, port, stackFolder(home))) === undefined;
  } catch {
    return await acceptsConnections(port); // without the key, only the port can be checked
  }
}

/** True when the servers of stack.yaml serve. */
const serves = (servers: OwnedByOthers): Promise<boolean> =>
  requireServing(servers).then(
    () => true,
    () => false,
  );

const whereOf = (home: string, name: string, { ofOthers }: { readonly ofOthers?: true | undefined }): string =>
  ofOthers ? 'stack.yaml' : logFile(home, name);

function childProblem(
  home: string,
  { name, kind, state, lastExit, pid, startTime }: StackInfo['children'][number],
): string[] {
  if (kind === 'temporal' || kind === 'nats') return []; // checked directly
  if (state === 'ready' && pid !== undefined && startTime !== undefined && isAlive({ pid, startTime })) return [];
  return [`${name} is ${state}${lastExit === undefined ? '' : ` (last: ${lastExit})`}: see ${logFile(home, name)}`];
}
