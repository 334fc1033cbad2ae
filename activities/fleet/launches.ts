/**
 * Buying. A launch is a decision in the store before the provider is asked, and its token makes a second call harmless.
 * So a control process may die at any point: the next pass asks again for every launch that has no answer.
 */
import { isBought, machineOf, secondsOf } from '../../core/fleet/spec.ts';
import type { BoughtPool, FleetSpec } from '../../core/fleet/spec.ts';
import type { LaunchRecord } from '../../core/fleet/records.ts';
import { placeName } from '../../core/fleet/types.ts';
import type { Decision } from '../../core/fleet/types.ts';
import type { CloudInstance, LaunchAnswer } from '../../core/ports/provider.ts';
import type { FleetLog, KnownLaunch } from '../../log/fleet/fleet-log.ts';
import type { FleetPorts } from '../ports/fleet.ts';

/**
 * Decides a launch and carries it out. `n`: follows the launches that the plan has seen; false when another control
 * process has decided that one: it plans, too, and the next pass sees what it did.
 */
export async function launch(
  ports: FleetPorts,
  log: FleetLog,
  spec: FleetSpec,
  { n, pool: name, place, from, to, because }: Decision & { readonly n: number },
  now: Date,
): Promise<boolean> {
  const pool = spec.pools[name];
  if (pool === undefined || !isBought(pool)) throw new RangeError(`${name} is not a pool that is bought`);
  const { roles } = pool;
  const { joinUntil, expires } = timesOf(pool, now);
  const words = await ports.prepareLaunch({
    pool: name,
    roles,
    launch: n,
    store: log.store,
    region: pool.ec2.region,
    lonelySeconds: secondsOf(pool.lonely),
    ownScorers: pool.own_scorers,
    engines: pool.engines,
    joinUntil,
    expires,
  });
  const record = {
    ...{ n, pool: name, at: now.toISOString(), place, count: to - from, because },
    ...words,
    ...{ expires, machine: machineOf(pool) },
  };
  if (!(await log.decideLaunch(record))) return false;
  ports.say(`${because}`);
  const decided = (await log.launches(name)).at(n - 1);
  if (decided !== undefined) await carryOut(ports, log, decided, now);
  return true;
}

/** Asks the provider for a launch that has no answer. Throws RetryableError. */
export async function carryOut(
  ports: FleetPorts,
  log: FleetLog,
  { record, answer }: KnownLaunch,
  now: Date,
): Promise<void> {
  if (answer !== undefined) return;
  const given = isTooOld(record, now) ? await whatWasBought(ports, log, record) : await ask(ports, log, record);
  const { refused } = given;
  const instances = given.instances.map(({ id, launchedAt }) => ({ id, launchedAt }));
  await log.answerLaunch({
    ...{ n: record.n, pool: record.pool, at: now.toISOString(), instances },
    ...(refused && { refused: { ...refused, message: refused.message.slice(0, 1_000) } }),
  });
  if (refused !== undefined)
    ports.say(`${record.pool}: no ${placeName(record.place)}: ${refused.code}: ${refused.message}`);
}

function ask({ provider }: FleetPorts, log: FleetLog, record: LaunchRecord): Promise<LaunchAnswer> {
  const { token, place, count, machine, userData, pool, n, expires } = record;
  const tags = { stack: log.stack, pool, launch: n, expires };
  return provider.launch({ token, place, count, machine, userData, tags });
}

/**
 * True when the launch is so old that its machines could not join any more. A token may be forgotten by then, so
 * nothing is asked for.
 */
const isTooOld = ({ at }: LaunchRecord, now: Date): boolean => now.getTime() - Date.parse(at) > oldMs;
const oldMs = 10 * 60_000;

async function whatWasBought({ provider }: FleetPorts, log: FleetLog, record: LaunchRecord): Promise<LaunchAnswer> {
  const { pool, n, machine } = record;
  const all = await provider.list(machine.region, log.stack);
  const instances = all.filter(({ tags }: CloudInstance) => tags.pool === pool && tags.launch === n);
  const message = 'the control process was away for too long to ask';
  return { instances, refused: { kind: 'capacity', code: 'NotAsked', message } };
}

function timesOf({ join_within, lifetime }: BoughtPool, now: Date): { joinUntil: string; expires: string } {
  const after = (duration: string) => new Date(now.getTime() + secondsOf(duration) * 1_000).toISOString();
  return { joinUntil: after(join_within), expires: after(lifetime) };
}
