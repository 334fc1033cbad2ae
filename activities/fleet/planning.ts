/**
 * What the planner is given: the pools as they can be bought now, what is there, what the runs need, and what was
 * refused.
 */
import { meets } from '../../core/machine-needs.ts';
import { medianOf } from '../../core/median.ts';
import { machineOf } from '../../core/wire/join.ts';
import { demandOf, poolFor, trainerDemands } from '../../core/fleet/demand.ts';
import type { ObservedRun } from '../../core/fleet/demand.ts';
import type { FleetRecord } from '../../core/fleet/records.ts';
import { samePlace } from '../../core/fleet/spread.ts';
import { boughtPools, plannedPool } from '../../core/fleet/spec.ts';
import type { BoughtPool, SpotPrices } from '../../core/fleet/spec.ts';
import type { Demand, Instance, NotedPlan, PlanInput, Pool, Refusal, TrainerDemand } from '../../core/fleet/types.ts';
import type { Role } from '../../core/roles.ts';
import type { FleetLog, KnownInstance } from '../../log/fleet/fleet-log.ts';
import type { Seen } from './endings.ts';
import type { FleetPorts } from '../ports/fleet.ts';

/** What one pass works with. */
export interface Pass {
  readonly wanted: FleetRecord;
  readonly spot: SpotPrices;
  readonly seen: Seen;
  /** Instances that have not ended. */
  readonly living: readonly KnownInstance[];
}

export interface Planning {
  readonly input: PlanInput;
  /** Why a pool is left out. */
  readonly notes: readonly string[];
  readonly stopped: NotedPlan['stopped'];
}

/** What a keeper remembers between passes. A new one begins anew. */
export class Memory {
  /** Maps a pool to the time since when no run has needed it, in ms. */
  readonly idle = new Map<string, number>();
  /**
   * Maps a run to the number of rollout workers when an iteration ended. Its seconds say nothing about workers that
   * came later.
   */
  readonly #measured = new Map<string, { readonly position: number; readonly workers: number }>();

  workersAt(run: string, position: number, workers: number): number {
    const known = this.#measured.get(run);
    if (known?.position === position) return known.workers;
    this.#measured.set(run, { position, workers });
    return workers;
  }
}

export async function planning(fleet: FleetPorts, log: FleetLog, pass: Pass, memory: Memory): Promise<Planning> {
  const { wanted, seen, living } = pass;
  const stopped = await stoppedPools(log, wanted);
  const { pools, notes } = await plannable(log, pass, new Set(stopped.map(({ pool }) => pool)));
  const runs = await fleet.observeRuns(log.store);
  const demands = demandsOf(runs, pass, pools, memory);
  const trainers = trainersOf(runs, pass, pools);
  const { max_usd_per_hour: most } = wanted.spec;
  const input = {
    pools,
    instances: living.map((one) => instanceOf(one, seen)),
    demands,
    trainers,
    refusals: await recentRefusals(log, pools, seen.now),
    idleFor: idleTimes(pools, [...demands, ...trainers], seen.now, memory.idle),
    ...(most !== undefined && { maxUsdPerHour: most }),
  };
  return { input, notes, stopped };
}

/** Pools whose settings the provider has refused since they were last changed. */
async function stoppedPools(log: FleetLog, { spec, at }: FleetRecord): Promise<NotedPlan['stopped']> {
  const newest = await Promise.all(boughtPools(spec).map(async ([pool]) => (await log.launches(pool)).at(-1)));
  return newest.flatMap((launch) => {
    const refused = launch?.answer?.refused;
    if (launch === undefined || refused?.kind !== 'configuration' || launch.record.at < at) return [];
    return { pool: launch.record.pool, because: `${refused.code}: ${refused.message}` };
  });
}

async function plannable(
  log: FleetLog,
  { wanted, spot, living }: Pass,
  stopped: ReadonlySet<string>,
): Promise<{ readonly pools: Pool[]; readonly notes: string[] }> {
  const notes: string[] = [];
  const pools: Pool[] = [];
  for (const [name, spec] of boughtPools(wanted.spec)) {
    const count = wanted.scale[name];
    const bootSeconds = medianBoot(await log.instances(), name);
    const facts = { spot, ...(bootSeconds !== undefined && { bootSeconds }), ...(count !== undefined && { count }) };
    const pool = plannedPool(name, spec, facts);
    const places = withPlacesOf(living, pool, spec);
    if (places.length === 0) notes.push(`${name} can buy nothing: there is no price for any of its types in its zones`);
    else if (!stopped.has(name)) pools.push({ ...pool, places });
  }
  return { pools, notes };
}

/** A place whose price is not known at present counts while instances are there. */
function withPlacesOf(living: readonly KnownInstance[], pool: Pool, { ec2 }: BoughtPool): Pool['places'] {
  const places = [...pool.places];
  for (const { launch } of living) {
    const { place } = launch;
    const isNamed = ec2.types.includes(place.type) && ec2.subnets[place.zone] !== undefined;
    if (launch.pool === pool.name && isNamed && !places.some((one) => samePlace(one, place))) places.push(place);
  }
  return places;
}

/** Launches that are measured. */
const bootsMeasured = 9;

/** Median of the last ones, in seconds. */
function medianBoot(all: readonly KnownInstance[], pool: string): number | undefined {
  const times = all
    .flatMap(({ launch, launchedAt, ready }) =>
      launch.pool === pool && ready !== undefined ? (Date.parse(ready.at) - Date.parse(launchedAt)) / 1_000 : [],
    )
    .slice(-bootsMeasured);
  return medianOf(times);
}

/**
 * One that has got a notice, or that the cloud expects to take back, counts as leaving, so that its successor is bought
 * at once.
 */
function instanceOf(
  { id, launch: { pool, place }, joined, ready, leaving }: KnownInstance,
  { present }: Seen,
): Instance {
  const entry = joined && present.get(joined.instance);
  const leaves = leaving !== undefined || entry?.state === 'draining' || entry?.atRisk === true;
  return { id, pool, place, state: leaves ? 'draining' : ready === undefined ? 'booting' : 'ready' };
}

/** A run's rollouts are done by the first pool that has the role and that the run allows. */
function demandsOf(runs: readonly ObservedRun[], pass: Pass, pools: readonly Pool[], memory: Memory): Demand[] {
  const { wanted, seen } = pass;
  const [all, buyable] = [ofRole('rollout', pass), offered(pools, pass)];
  return runs.flatMap((run) => {
    const { rollout: needs = {} } = run.needs;
    const workers = all.filter((one) => meets(needs, one));
    const ownWorkers = workers.filter(({ bought }) => !bought).length;
    const serving = poolFor('rollout', run, buyable);
    if (serving === undefined) return [];
    const then = memory.workersAt(run.run, run.position, workers.length);
    const facts = {
      ...{ pool: serving.name, workers: then, ownWorkers },
      ...{ waitingUsdPerHour: wanted.spec.waiting_usd_per_hour, now: seen.now.getTime() },
    };
    return demandOf(run, facts) ?? [];
  });
}

function trainersOf(runs: readonly ObservedRun[], pass: Pass, pools: readonly Pool[]): TrainerDemand[] {
  const own = ofRole('trainer', pass).filter(({ bought }) => !bought);
  return trainerDemands(runs, offered(pools, pass), own);
}

const offered = (pools: readonly Pool[], { wanted }: Pass) =>
  pools.map(({ name }) => ({ name, roles: wanted.spec.pools[name]?.roles ?? [] }));

/** The workers that take jobs of the role, with what their machines offer. */
function ofRole(role: Role, { seen, living }: Pass) {
  const bought = new Set(living.flatMap(({ joined }) => joined?.instance ?? []));
  return [...seen.present.values()]
    .filter(({ roles, state }) => roles.includes(role) && (state === 'ready' || state === 'busy'))
    .map((entry) => ({ bought: bought.has(entry.instance), ...machineOf(entry) }));
}

/** Older ones count no more: the planner lets a place rest for three minutes. */
const refusedMs = 180_000;
/** Launches of a pool that are looked at. */
const launchesBack = 20;

async function recentRefusals(log: FleetLog, pools: readonly Pool[], now: Date): Promise<Refusal[]> {
  const launches = await Promise.all(pools.map(async ({ name }) => (await log.launches(name)).slice(-launchesBack)));
  return launches.flat().flatMap(({ record, answer }): Refusal | [] => {
    const age = now.getTime() - Date.parse(answer?.at ?? '');
    const refused = answer?.refused;
    if (refused === undefined || refused.kind === 'configuration' || age > refusedMs) return [];
    return { place: record.place, kind: refused.kind, secondsAgo: age / 1_000 };
  });
}

function idleTimes(
  pools: readonly Pool[],
  demands: readonly Pick<Demand, 'pool'>[],
  now: Date,
  since: Map<string, number>,
): Record<string, number> {
  const idle: Record<string, number> = {};
  for (const { name } of pools) {
    if (demands.some(({ pool }) => pool === name)) {
      since.delete(name);
      continue;
    }
    const began = since.get(name) ?? now.getTime();
    since.set(name, began);
    idle[name] = (now.getTime() - began) / 1_000;
  }
  return idle;
}
