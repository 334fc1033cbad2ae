/**
 * Kills of the control process while it buys and gives back, one per seed: between a decision, the call, the answer,
 * the join and the end. Afterwards the cloud's own list and petrel's records must name the same instances: none is
 * bought twice, and none is left.
 */
import type { FaultPoint } from '../../log/faults/index.ts';
import { Seeded } from '../recovery/seeded.ts';
import type { FleetBed } from './bed.ts';
import { patienceMs } from '../patience.ts';

/** A decision of the fleet, and on which side of it the process dies. */
const places: readonly { readonly point: FaultPoint; readonly kind: string }[] = [
  { point: 'decide.before', kind: 'launch' },
  { point: 'decide.after', kind: 'launch' },
  { point: 'decide.before', kind: 'answer' },
  { point: 'decide.after', kind: 'answer' },
  { point: 'decide.before', kind: 'joined' },
  { point: 'decide.after', kind: 'joined' },
  { point: 'decide.before', kind: 'leaving' },
  { point: 'decide.after', kind: 'leaving' },
  { point: 'decide.before', kind: 'ended' },
  { point: 'decide.after', kind: 'ended' },
];

/** What the cloud does meanwhile. */
const weathers = [
  'calm',
  'lost answer',
  'throttled',
  'late list',
  'slow boot',
  'a boot that fails',
  'no capacity',
] as const;
type Weather = (typeof weathers)[number];

export interface FleetPlan {
  readonly seed: number;
  readonly place: (typeof places)[number];
  readonly weather: Weather;
  readonly count: number;
}

/** Ten seeds in a row have every place. */
export function fleetPlan(seed: number): FleetPlan {
  const random = new Seeded(seed);
  const place = places[(seed - 1) % places.length] as FleetPlan['place'];
  return { seed, place, weather: random.pick(weathers), count: 1 + random.below(2) };
}

export const fleetTitle = ({ seed, place, weather, count }: FleetPlan): string =>
  `seed ${seed}: the control process dies at ${place.point} of ${place.kind}, ${count} wanted, ${weather}`;

/** Throws an error with the seed's title. */
export async function runFleetSeed(on: FleetBed, plan: FleetPlan): Promise<void> {
  await on.up();
  const before = new Set(on.served.cloud.bills().map(({ id }) => id));
  const { injector } = on;
  const id = `fleet-${plan.seed}`;
  try {
    await on.apply({ join_within: plan.weather === 'a boot that fails' ? '10s' : '1m' });
    letThereBe(on, plan.weather);
    injector.arm({ id, point: plan.place.point, process: 'control', facts: { kind: plan.place.kind }, action: 'kill' });
    await on.petrel('fleet', 'scale', 'samplers', String(plan.count));
    await on.ready(plan.count);
    await on.petrel('fleet', 'scale', 'samplers', '0');
    await injector.fired(id, AbortSignal.timeout(patienceMs)).catch((cause: unknown) => {
      throw new Error('the fault did not fire', { cause });
    });
    await on.empty();
    await check(on, plan, before);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${fleetTitle(plan)}: ${why}`, { cause });
  } finally {
    injector.disarm(id);
    clear(on);
  }
}

function letThereBe({ served: { cloud } }: FleetBed, weather: Weather): void {
  if (weather === 'lost answer') cloud.faults.order({ action: 'RunInstances', code: 'lostAnswer' });
  if (weather === 'throttled') cloud.faults.order({ code: 'RequestLimitExceeded', times: 3 });
  if (weather === 'late list') cloud.settings.visibleAfterMs = 3_000;
  if (weather === 'slow boot') cloud.settings.bootMs = 2_000;
  if (weather === 'a boot that fails') cloud.faults.failBoots(1);
  if (weather === 'no capacity') cloud.setCapacity({ type: 'c7i.2xlarge', zone: 'us-east-1a', market: 'spot' }, 0);
}

function clear({ served: { cloud } }: FleetBed): void {
  cloud.faults.clear();
  Object.assign(cloud.settings, { visibleAfterMs: 0, bootMs: 0 });
  cloud.setCapacity({ type: 'c7i.2xlarge', zone: 'us-east-1a', market: 'spot' }, undefined);
}

async function check(on: FleetBed, { weather, count }: FleetPlan, before: ReadonlySet<string>): Promise<void> {
  const bought = on.served.cloud.bills().filter(({ id }) => !before.has(id));
  const known = await on.log().instances();
  const strangers = bought.filter(({ id }) => known.every((one) => one.id !== id));
  if (strangers.length > 0) throw new Error(`bought, and in no answer: ${JSON.stringify(strangers)}`);
  const twice = bought.filter(({ id, tags }) => {
    const records = known.filter((one) => one.id === id);
    return records.length !== 1 || records.some(({ launch }) => String(launch.n) !== tags['petrel:launch']);
  });
  if (twice.length > 0) throw new Error(`in two answers, or in that of another launch: ${JSON.stringify(twice)}`);
  // One that has not joined in time is replaced, also when it could not because nobody answered.
  const most = weather === 'a boot that fails' ? 2 * count : count;
  if (bought.length > most) throw new Error(`wanted ${most}, bought ${bought.length}: ${JSON.stringify(bought)}`);
}
