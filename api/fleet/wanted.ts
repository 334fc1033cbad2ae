/**
 * What people want of the fleet: `petrel fleet apply`, `scale`, `drain` and `rm`. It stands in the store when these
 * return.
 */
import { readFileSync } from 'node:fs';
import { InvalidInputError, PetrelError, TerminalError } from '../../core/errors.ts';
import type { FleetRecord } from '../../core/fleet/records.ts';
import { boughtPools, checkFleetSpec, machineOf } from '../../core/fleet/spec.ts';
import type { FleetSpec } from '../../core/fleet/spec.ts';
import { fleetStore, noteFleetStore } from '../../infra/stack/fleet-notes.ts';
import { readStack, stackName } from '../../infra/stack/index.ts';
import { FleetLog } from '../../log/fleet/fleet-log.ts';
import { parseYaml } from '../../infra/yaml.ts';
import { openExistingStore, openStore, storeUrl } from '../../infra/store/open.ts';
import { defaultStore, rememberStore } from '../../infra/store/places.ts';
import type { ApiContext } from '../context.ts';
import { requireOwnNats } from './own-nats.ts';

export interface ApplyRequest {
  /** Path of fleet.yaml, for reading and for errors. */
  readonly path: string;
  readonly where: string;
  /** Folder or URL; default: where the fleet is, else the store of this home. */
  readonly store?: string | undefined;
}

/**
 * Throws InvalidInputError that names the key for a bad file, and for types, zones, images and rights that the cloud
 * does not have; and when bought machines could not reach this stack.
 */
export async function applyFleet(context: ApiContext, { path, where, store }: ApplyRequest): Promise<FleetRecord> {
  const { home } = context;
  const spec = readSpec(path, where);
  requireReachable(home, spec);
  await checkPools(spec, where, stackName(home));
  const url = storeUrl(store ?? fleetStore(home) ?? defaultStore(home));
  const log = new FleetLog(await openStore(url), stackName(home));
  const record = await log.want((last) => ({ scale: {}, drained: last?.drained ?? [], spec }), new Date());
  rememberStore(home, url);
  noteFleetStore(home, url);
  await tellWorkflow(home, url);
  return record;
}

function readSpec(path: string, where: string): FleetSpec {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new InvalidInputError(`expected a readable file, got ${where}`, {
      hint: 'docs/do/fleet-on-ec2.md shows a fleet.yaml',
      cause,
    });
  }
  return checkFleetSpec(parseYaml(text, where).value, where);
}

function requireReachable(home: string, spec: FleetSpec): void {
  const stack = readStack(home);
  requireOwnNats(stack);
  if (boughtPools(spec).length === 0 || stack?.nats.ca !== undefined) return;
  const is = stack === undefined ? 'no running stack' : `one that listens at ${stack.nats.url} only`;
  throw new InvalidInputError(`expected a stack that bought machines can reach, got ${is}`, {
    hint: 'petrel up --listen ADDRESS, with an address at which the machines reach this one',
  });
}

async function checkPools(spec: FleetSpec, where: string, stack: string): Promise<void> {
  // Loaded only here: a command that looks at the fleet does not need the client of EC2.
  const { ec2Provider } = await import('../../infra/fleet/ec2/provider.ts');
  const provider = ec2Provider();
  for (const [name, pool] of boughtPools(spec)) {
    const { types, subnets } = pool.ec2;
    await provider.check(machineOf(pool), types, Object.keys(subnets), stack).catch((error: unknown) => {
      if (!(error instanceof InvalidInputError)) throw error;
      const at = error.where === undefined ? `pools.${name}.ec2` : `pools.${name}.${error.where}`;
      const detail = { where: `${where}: ${at}`, cause: error };
      throw new InvalidInputError(error.message, { ...detail, ...(error.hint !== undefined && { hint: error.hint }) });
    });
  }
  provider.close();
}

/** A pool gets this many instances instead of the planner's number; `auto`: the planner's again. */
export async function scaleFleet(context: ApiContext, pool: string, count: number | 'auto'): Promise<FleetRecord> {
  return change(context, ({ spec, scale, drained }) => {
    const bought = boughtPools(spec).find(([name]) => name === pool)?.[1];
    if (bought === undefined) throw noPool(pool, spec);
    if (count !== 'auto' && count > bought.max)
      throw new InvalidInputError(`expected at most ${bought.max} instances, which is max of ${pool}, got ${count}`, {
        hint: 'petrel fleet apply with a larger max',
      });
    const { [pool]: _, ...others } = scale;
    return { spec, drained, scale: count === 'auto' ? others : { ...others, [pool]: count } };
  });
}

/** The pool is forgotten, and its instances leave when their jobs have ended. */
export async function removePool(context: ApiContext, pool: string): Promise<FleetRecord> {
  return change(context, ({ spec, scale, drained }) => {
    if (spec.pools[pool] === undefined) throw noPool(pool, spec);
    const { [pool]: _, ...pools } = spec.pools;
    const { [pool]: __, ...others } = scale;
    return { spec: { ...spec, pools }, scale: others, drained };
  });
}

/** The instance leaves when its jobs have ended. Another one is bought where that pays. */
export async function drainInstance(context: ApiContext, id: string): Promise<FleetRecord> {
  const { log } = await openFleet(context);
  const known = (await log.instances()).find((one) => one.id === id || one.joined?.instance === id);
  if (known === undefined || known.ended !== undefined)
    throw new InvalidInputError(`expected an instance of the fleet that runs, got ${id}`, {
      hint: 'petrel fleet ls shows them',
    });
  return change(context, ({ spec, scale, drained }) => ({
    spec,
    scale,
    drained: [...new Set([...drained, known.id])],
  }));
}

const noPool = (pool: string, { pools }: FleetSpec) =>
  new InvalidInputError(`expected a pool of the fleet, got ${pool}`, {
    hint:
      Object.keys(pools).length === 0 ? 'petrel fleet apply fleet.yaml' : `its pools: ${Object.keys(pools).join(', ')}`,
  });

type Wanted = Pick<FleetRecord, 'spec' | 'scale' | 'drained'>;

async function change(context: ApiContext, to: (last: FleetRecord) => Wanted): Promise<FleetRecord> {
  const { log, url } = await openFleet(context);
  const record = await log.want((last) => {
    if (last === undefined) throw noFleet();
    return to(last);
  }, new Date());
  await tellWorkflow(context.home, url);
  return record;
}

/** The records of this stack's fleet. Throws TerminalError `NoFleet`. */
export async function openFleet({ home }: Pick<ApiContext, 'home'>): Promise<{ log: FleetLog; url: string }> {
  const url = fleetStore(home);
  if (url === undefined) throw noFleet();
  return { log: new FleetLog(await openExistingStore(url), stackName(home)), url };
}

const noFleet = () =>
  new TerminalError('NoFleet', 'this stack has no fleet', { hint: 'petrel fleet apply fleet.yaml makes one' });

/**
 * Signals the fleet's workflow, which then looks at once. Without it the control process looks by itself some seconds
 * later.
 */
async function tellWorkflow(home: string, store: string): Promise<void> {
  const stack = readStack(home);
  if (stack === undefined) return;
  const [{ connectTemporalClient }, { startFleetWorkflow }] = await Promise.all([
    import('../../infra/temporal/connection.ts'),
    import('../../infra/temporal/fleet-workflow.ts'),
  ]);
  try {
    const client = await connectTemporalClient(stack);
    await startFleetWorkflow(client, store).finally(() => client.connection.close());
  } catch (error) {
    if (!(error instanceof PetrelError)) throw error;
  }
}
