/**
 * One pass over the fleet of a stack: what is there, what the runs need, what is to be bought and given back. It has no memory
 * besides the store, so it may end at any point; the next pass goes on.
 */
import { boughtPools, plannedPool, spotKey } from '../../core/fleet/spec.ts';
import type { BoughtPool, FleetSpec, SpotPrices } from '../../core/fleet/spec.ts';
import { demandOf } from '../../core/fleet/demand.ts';
import { plan } from '../../core/fleet/plan.ts';
import { samePlace } from '../../core/fleet/spread.ts';
import type { FleetRecord } from '../../core/fleet/records.ts';
import type { Demand, Instance, Plan, Pool, Refusal } from '../../core/fleet/types.ts';
import type { CloudInstance } from '../../core/ports/provider.ts';
import type { Presence } from '../../core/wire/messages.ts';
import type { FleetLog, KnownInstance } from '../../infra/store/fleet-log.ts';
import type { StoreRef } from '../janitor.ts';
import type { ActivityPorts } from '../ports.ts';
import { endLeaving, mostIdle, noteGone, noteOverdue, Strangers } from './endings.ts';
import type { Seen } from './endings.ts';
import { carryOut, launch } from './launches.ts';
import type { FleetPorts } from './ports.ts';

/** How soon the next pass is due. `moving`: something boots or leaves. `nothing`: nothing is wanted and nothing is there. */
export type Tended = 'moving' | 'still' | 'nothing';

const strangers = new Strangers();
/** By pool: since when no run has needed it, in ms. A new control process starts to count again. */
const idleSince = new Map<string, number>();

export async function tendFleet(ports: ActivityPorts, { store }: StoreRef): Promise<Tended> {
  const { fleet } = ports;
  const log = fleet.openFleet(await ports.openStore(store));
  const wanted = await log.wanted();
  if (wanted === undefined) return 'nothing';
  await answerLaunches(fleet, log, ports.now());
  const regions = await regionsOf(log, wanted.spec);
  const seen = await look(ports, log, regions);
  await keepBooks(fleet, log, wanted, seen);
  const spot = await spotPrices(fleet, wanted.spec);
  await decide(fleet, log, { wanted, spot, seen });
  await endLeaving(fleet, log, await living(log), seen);
  const left = await living(log);
  const stands = left.every(({ joined, leaving }) => joined !== undefined && leaving === undefined);
  if (left.length === 0 && boughtPools(wanted.spec).length === 0) return 'nothing';
  return stands ? 'still' : 'moving';
}

const living = async (log: FleetLog): Promise<KnownInstance[]> =>
  (await log.instances()).filter(({ ended }) => ended === undefined);

async function answerLaunches(fleet: FleetPorts, log: FleetLog, now: Date): Promise<void> {
  for (const pool of await log.launchedPools())
    for (const launched of await log.launches(pool)) await carryOut(fleet, log, launched, now);
}

/** Of the pools of today, and of instances of earlier ones. */
async function regionsOf(log: FleetLog, spec: FleetSpec): Promise<readonly string[]> {
  const now = boughtPools(spec).map(([, { ec2 }]) => ec2.region);
  return [...new Set([...now, ...(await living(log)).map(({ launch: { machine } }) => machine.region)])];
}

async function look(
  { fleet, listWorkers, now }: ActivityPorts,
  log: FleetLog,
  regions: readonly string[],
): Promise<Seen & { byRegion: ReadonlyMap<string, readonly CloudInstance[]> }> {
  const byRegion = new Map<string, readonly CloudInstance[]>();
  for (const region of regions) byRegion.set(region, await fleet.provider.list(region, log.stack));
  const clouds = new Map([...byRegion.values()].flat().map((one) => [one.id, one]));
  const present = new Map((await listWorkers()).map((entry): [string, Presence] => [entry.instance, entry]));
  return { byRegion, clouds, present, now: now() };
}

/** Notes what has ended and what is overdue, and ends what no launch of ours has bought. */
async function keepBooks(
  fleet: FleetPorts,
  log: FleetLog,
  { spec, drained }: FleetRecord,
  seen: Seen & { byRegion: ReadonlyMap<string, readonly CloudInstance[]> },
): Promise<void> {
  await noteGone(fleet, log, await living(log), seen);
  const joinWithin = (name: string) =>
    (boughtPools(spec).find(([pool]) => pool === name)?.[1].join_within ?? 600) * 1_000;
  const all = await living(log);
  await noteOverdue(log, all, joinWithin, seen.now);
  for (const { id, launch: of, leaving } of all) {
    if (leaving !== undefined) continue;
    const leave = (ending: 'drained' | 'unneeded', because: string) =>
      log.noteLeaving({ id, at: seen.now.toISOString(), ending, because });
    if (drained.includes(id)) await leave('drained', 'petrel fleet drain');
    else if (boughtPools(spec).every(([pool]) => pool !== of.pool)) await leave('unneeded', 'its pool was removed');
  }
  const known = new Set((await log.instances()).map(({ id }) => id));
  const unknown = [...seen.clouds.values()].filter(
    ({ id, state }) => !known.has(id) && (state === 'running' || state === 'pending'),
  );
  const ending = strangers.again(unknown.map(({ id }) => id));
  for (const [region, listed] of seen.byRegion) {
    const ids = listed.map(({ id }) => id).filter((id) => ending.includes(id));
    if (ids.length === 0) continue;
    await fleet.provider.terminate(region, ids);
    fleet.say(`ended ${ids.join(', ')}: no launch of this stack has bought them`);
  }
}

/** Kept for a minute: prices move slowly. */
const pricesMs = 60_000;
let prices: { readonly at: number; readonly asked: string; readonly spot: SpotPrices } | undefined;

async function spotPrices({ provider }: FleetPorts, spec: FleetSpec): Promise<SpotPrices> {
  const pools = boughtPools(spec).filter(([, { markets }]) => markets.includes('spot'));
  const asked = JSON.stringify(pools.map(([, { ec2 }]) => [ec2.region, ec2.types]));
  if (prices !== undefined && prices.asked === asked && Date.now() - prices.at < pricesMs) return prices.spot;
  const spot = new Map<string, number>();
  for (const [, { ec2 }] of pools)
    for (const price of await provider.spotPrices(ec2.region, ec2.types)) spot.set(spotKey(price), price.usdPerHour);
  prices = { at: Date.now(), asked, spot };
  return spot;
}

interface Given {
  readonly wanted: FleetRecord;
  readonly spot: SpotPrices;
  readonly seen: Seen;
}

/** Plans, notes the plan, and carries it out. */
async function decide(fleet: FleetPorts, log: FleetLog, given: Given): Promise<void> {
  const { wanted, spot, seen } = given;
  const all = await living(log);
  const stopped = await stoppedPools(log, wanted);
  const [pools, notes] = await plannable(log, given, all, new Set(stopped.map(({ pool }) => pool)));
  const demands = await demandsOf(fleet, log, given, pools, all);
  const planned = plan({
    pools,
    instances: all.map((one) => instanceOf(one, seen)),
    demands,
    refusals: await refusals(log, pools, seen.now),
    idleFor: idleTimes(pools, demands, seen.now),
    ...(wanted.spec.max_usd_per_hour !== undefined && { maxUsdPerHour: wanted.spec.max_usd_per_hour }),
  });
  const prices = [...spot].map(([key, usdPerHour]) => {
    const [type = '', zone = ''] = key.split(' ');
    return { type, zone, usdPerHour };
  });
  fleet.notePlan({ ...planned, notes: [...notes, ...planned.notes], at: seen.now.toISOString(), prices, stopped });
  await carryOutPlan(fleet, log, given, planned, all);
}

async function carryOutPlan(
  fleet: FleetPorts,
  log: FleetLog,
  { wanted, seen }: Given,
  planned: Plan,
  all: readonly KnownInstance[],
): Promise<void> {
  for (const { run, because } of planned.pauses) await fleet.pauseRun(log.store, run, because);
  for (const decision of planned.decisions) {
    const { pool, place, from, to, because } = decision;
    if (to > from) {
      const room = wanted.spec.max_instances - (await living(log)).length;
      const count = Math.min(to - from, room);
      if (count > 0) await launch(fleet, log, wanted.spec, { ...decision, to: from + count }, seen.now);
      continue;
    }
    const there = all.filter(
      ({ launch: of, leaving }) => leaving === undefined && of.pool === pool && samePlace(of.place, place),
    );
    for (const { id } of mostIdle(there, seen.present, from - to))
      if (await log.noteLeaving({ id, at: seen.now.toISOString(), ending: 'unneeded', because })) fleet.say(because);
  }
}

/** Pools whose settings the provider has refused since they were last changed. */
async function stoppedPools(log: FleetLog, { spec, at }: FleetRecord): Promise<{ pool: string; because: string }[]> {
  const found: { pool: string; because: string }[] = [];
  for (const [pool] of boughtPools(spec)) {
    const refused = (await log.launches(pool)).at(-1)?.answer?.refused;
    const newest = (await log.launches(pool)).at(-1)?.record.at ?? '';
    if (refused?.kind === 'configuration' && newest > at)
      found.push({ pool, because: `${refused.code}: ${refused.message}` });
  }
  return found;
}

/** The pools that can be planned now: with a price, and not stopped. */
async function plannable(
  log: FleetLog,
  { wanted, spot }: Given,
  all: readonly KnownInstance[],
  stopped: ReadonlySet<string>,
): Promise<[Pool[], string[]]> {
  const notes: string[] = [];
  const pools: Pool[] = [];
  for (const [name, spec] of boughtPools(wanted.spec)) {
    const count = wanted.scale[name];
    const bootSeconds = await measuredBoot(log, name);
    const pool = plannedPool(name, spec, {
      spot,
      ...(bootSeconds !== undefined && { bootSeconds }),
      ...(count !== undefined && { count }),
    });
    const places = withPlacesOf(pool, spec, all);
    if (places.length === 0) notes.push(`${name} can buy nothing: there is no price for any of its types in its zones`);
    else if (!stopped.has(name)) pools.push({ ...pool, places });
  }
  return [pools, notes];
}

/** Places for which there is no price at present count when instances are there. */
function withPlacesOf(pool: Pool, { ec2 }: BoughtPool, all: readonly KnownInstance[]): Pool['places'] {
  const places = [...pool.places];
  for (const { launch: of } of all) {
    const { place } = of;
    const isNamed = ec2.types.includes(place.type) && ec2.subnets[place.zone] !== undefined;
    if (of.pool === pool.name && isNamed && !places.some((one) => samePlace(one, place))) places.push(place);
  }
  return places;
}

/** Median of the last launches, in seconds. */
async function measuredBoot(log: FleetLog, pool: string): Promise<number | undefined> {
  const times = (await log.instances())
    .filter(({ launch: of, joined }) => of.pool === pool && joined !== undefined)
    .slice(-9)
    .map(({ launchedAt, joined }) => (Date.parse(joined?.at ?? launchedAt) - Date.parse(launchedAt)) / 1_000)
    .sort((a, b) => a - b);
  return times[Math.floor(times.length / 2)];
}

function instanceOf({ id, launch: { pool, place }, joined, leaving }: KnownInstance, { present }: Seen): Instance {
  const entry = joined && present.get(joined.instance);
  const leaves = leaving !== undefined || entry?.state === 'draining';
  return { id, pool, place, state: leaves ? 'draining' : joined === undefined ? 'booting' : 'ready' };
}

/** A run's rollouts are done by the first pool that has the role. */
async function demandsOf(
  fleet: FleetPorts,
  log: FleetLog,
  { wanted, seen }: Given,
  pools: readonly Pool[],
  all: readonly KnownInstance[],
): Promise<Demand[]> {
  const serving = pools.find(({ name }) => wanted.spec.pools[name]?.roles.includes('rollout'));
  if (serving === undefined) return [];
  const rollout = [...seen.present.values()].filter(
    ({ roles, state }) => roles.includes('rollout') && state !== 'draining' && state !== 'unhealthy',
  );
  const bought = new Set(all.flatMap(({ joined }) => joined?.instance ?? []));
  const ownWorkers = rollout.filter(({ instance }) => !bought.has(instance)).length;
  const facts = {
    pool: serving.name,
    workers: rollout.length,
    ownWorkers,
    waitingUsdPerHour: wanted.spec.waiting_usd_per_hour,
    now: seen.now.getTime(),
  };
  return (await fleet.observeRuns(log.store)).flatMap((run) => demandOf(run, facts) ?? []);
}

async function refusals(log: FleetLog, pools: readonly Pool[], now: Date): Promise<Refusal[]> {
  const found: Refusal[] = [];
  for (const { name } of pools)
    for (const { record, answer } of (await log.launches(name)).slice(-20)) {
      const { refused, at } = answer ?? {};
      const secondsAgo = (now.getTime() - Date.parse(at ?? '')) / 1_000;
      if (refused === undefined || refused.kind === 'configuration' || secondsAgo > refusedSeconds) continue;
      found.push({ place: record.place, kind: refused.kind, secondsAgo });
    }
  return found;
}
const refusedSeconds = 180;

function idleTimes(pools: readonly Pool[], demands: readonly Demand[], now: Date): Record<string, number> {
  const idle: Record<string, number> = {};
  for (const { name } of pools) {
    const isNeeded = demands.some(({ pool }) => pool === name);
    if (isNeeded) idleSince.delete(name);
    else idle[name] = (now.getTime() - (idleSince.get(name) ?? now.getTime())) / 1_000;
    if (!isNeeded && !idleSince.has(name)) idleSince.set(name, now.getTime());
  }
  return idle;
}
