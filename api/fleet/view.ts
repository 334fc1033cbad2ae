/** What the fleet is and why: `petrel fleet show`, `explain` and `ls`. */
import { stringify } from 'yaml';
import { charges } from '../../core/fleet/cost.ts';
import type { Charge } from '../../core/fleet/cost.ts';
import { billOfFleet } from '../../core/fleet/bill.ts';
import type { FleetRecord, LaunchRecord } from '../../core/fleet/records.ts';
import type { NotedPlan, Place } from '../../core/fleet/types.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { fleetStore, lastPlan } from '../../infra/stack/fleet-notes.ts';
import { historiesOf } from '../../log/fleet/fleet-histories.ts';
import type { FleetLog, KnownInstance } from '../../log/fleet/fleet-log.ts';
import type { ApiContext } from '../context.ts';
import { openFleet } from './wanted.ts';

export interface FleetInstance extends Place {
  readonly id: string;
  readonly pool: string;
  readonly state: 'booting' | 'ready' | 'busy' | 'draining' | 'lost' | 'ended';
  readonly launchedAt: string;
  readonly endedAt?: string;
  /** The machine's name in the jobs; absent before it has joined. */
  readonly instance?: string;
  readonly jobs: readonly string[];
  /** Rate of its workers together, over their last rollout jobs; absent before the first. */
  readonly tokensPerSecond?: number;
  /** Why it leaves or has ended. */
  readonly because?: string;
}

export interface FleetReport {
  readonly wanted: FleetRecord;
  readonly plan?: NotedPlan;
  readonly instances: readonly FleetInstance[];
  /** Launches that the provider has not answered yet. */
  readonly asked: readonly Pick<LaunchRecord, 'pool' | 'place' | 'count' | 'because'>[];
}

/** Throws TerminalError `NoFleet`. */
export async function fleetReport(
  context: Pick<ApiContext, 'home'>,
  workers: readonly Presence[],
): Promise<FleetReport> {
  const { log } = await openFleet(context);
  const wanted = await log.wanted();
  if (wanted === undefined) throw new Error('a fleet without a record is not noted');
  const plan = lastPlan(context.home);
  const launches = (await Promise.all((await log.launchedPools()).map((pool) => log.launches(pool)))).flat();
  return {
    wanted,
    ...(plan && { plan }),
    instances: (await log.instances()).map((one) => instanceOf(one, workers)),
    asked: launches
      .filter(({ answer }) => answer === undefined)
      .map(({ record: { pool, place, count, because } }) => ({ pool, place, count, because })),
  };
}

/** The text of fleet.yaml, with every default. */
export const fleetYaml = ({ scale, spec }: FleetRecord): string =>
  stringify(Object.keys(scale).length === 0 ? spec : { scale, ...spec }).trimEnd();

function instanceOf(one: KnownInstance, workers: readonly Presence[]): FleetInstance {
  const { id, launch, launchedAt, joined, leaving, ended } = one;
  const present = workers.filter(({ instance }) => instance === joined?.instance);
  const jobs = present.flatMap((worker) => worker.jobs);
  const because = ended?.because ?? leaving?.because;
  return {
    ...launch.place,
    ...{ id, pool: launch.pool, launchedAt, jobs },
    state: stateOf(one, present, jobs.length),
    ...(joined && { instance: joined.instance }),
    ...decodingOf(present),
    ...(ended && { endedAt: ended.at }),
    ...(because !== undefined && { because }),
  };
}

/** The decoding rate of the workers of one machine. */
export function decodingOf(workers: readonly Presence[]): Pick<FleetInstance, 'tokensPerSecond'> {
  const rates = workers.flatMap(({ tokensPerSecond }) => tokensPerSecond ?? []);
  return rates.length === 0 ? {} : { tokensPerSecond: rates.reduce((sum, rate) => sum + rate, 0) };
}

function stateOf(
  { ready, leaving, ended }: KnownInstance,
  present: readonly Presence[],
  jobs: number,
): FleetInstance['state'] {
  if (ended !== undefined) return 'ended';
  if (leaving !== undefined || present.some(({ state }) => state === 'draining')) return 'draining';
  if (ready === undefined) return 'booting';
  if (present.length === 0) return 'lost';
  return jobs > 0 ? 'busy' : 'ready';
}

/** Living instances and why there are as many; undefined without a fleet. */
export async function livingFleet(
  context: Pick<ApiContext, 'home'>,
  workers: readonly Presence[],
): Promise<LivingFleet | undefined> {
  if (fleetStore(context.home) === undefined) return undefined;
  const { instances, asked, plan } = await fleetReport(context, workers);
  const reasons = (plan?.reasons ?? []).map(({ pool, count, because }) => `${pool}: ${count}, because ${because}`);
  const stopped = (plan?.stopped ?? []).map(({ pool, because }) => `${pool} stands still: ${because}`);
  return {
    instances: instances.filter(({ state }) => state !== 'ended'),
    asked,
    notes: [...reasons, ...stopped, ...(plan?.notes ?? [])],
  };
}

export interface LivingFleet extends Pick<FleetReport, 'instances' | 'asked'> {
  /** Sentences of the last plan. */
  readonly notes: readonly string[];
}

export interface CostReport {
  readonly charges: readonly Charge[];
  /** What this number does not contain. */
  readonly missing: readonly string[];
}

/** Reports the cost of all instances until now. Throws TerminalError `NoFleet`. */
export async function costReport(context: Pick<ApiContext, 'home'>, now = new Date()): Promise<CostReport> {
  const { log } = await openFleet(context);
  return { charges: await chargesOf(log, now), missing: ['disks', 'public addresses', 'transfer', 'requests to S3'] };
}

/** The bill of all instances, divided. */
export async function chargesOf(log: FleetLog, now: Date): Promise<Charge[]> {
  const bill = billOfFleet(historiesOf(await log.instances()), await log.usage(), now.getTime() / 1_000);
  return charges(bill.instances, bill.spans);
}
