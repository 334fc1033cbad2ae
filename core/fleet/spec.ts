/**
 * `fleet.yaml`: the pools of a stack, the places where their instances can be bought, and what all of them may cost. A
 * recipe only narrows this (core/recipe/fleet.ts).
 */
import { z } from 'zod';
import { engineEnvironments } from '../engines.ts';
import { InvalidInputError } from '../errors.ts';
import { durationMs } from '../schedules/duration.ts';
import { roles } from '../roles.ts';
import { poolName, usualRoles } from '../wire/join.ts';
import type { Place, Pool } from './types.ts';

/** A duration as people write it: `90s`, `10m`, `12h`. */
const duration = z
  .string()
  .refine((text) => durationMs(text) !== undefined, 'expected a duration such as 90s, 10m or 12h');
/** Seconds of a duration in a spec. */
export const secondsOf = (text: string): number => (durationMs(text) ?? 0) / 1_000;

const usd = z.number().positive().max(1e6);
const count = z.int().nonnegative().max(10_000);
const word = z.string().regex(/^[A-Za-z0-9_.:/+=@-]{1,200}$/, 'expected letters, digits and . _ - : / @');

const ec2 = z.strictObject({
  region: word,
  /** AMI with Node 22 and nothing else. */
  image: word,
  /** Instance types, all of which compute the pool's jobs. */
  types: z.array(word).min(1).max(60),
  /** Subnet by zone. */
  subnets: z.record(word, word).refine((zones) => Object.keys(zones).length > 0, 'expected at least one zone'),
  security_groups: z.array(word).min(1),
  instance_profile: word.optional(),
  disk_gib: z.int().positive().max(16_384).optional(),
  /** Prices by type. Spot prices are asked for; EC2 has no question for these. */
  on_demand_usd_per_hour: z.record(word, usd).default({}),
});

const bought = z.strictObject({
  provider: z.literal('ec2'),
  roles: z
    .array(z.enum(roles))
    .min(1)
    .default([...usualRoles]),
  min: count.default(0),
  max: count,
  markets: z
    .array(z.enum(['spot', 'on_demand']))
    .min(1)
    .default(['spot']),
  /** The first so many instances are on demand; 0: none has to be. */
  on_demand_floor: count.default(0),
  /** A pool that no run has needed for so long goes down to `min`. */
  idle: duration.default('5m'),
  /** Time from the launch to the first job, until it is measured. */
  boot: duration.default('90s'),
  /** An instance that has not joined after so long is given back. */
  join_within: duration.default('10m'),
  /** An instance that cannot reach the stack for so long ends itself: nobody may be left who would end it. */
  lonely: duration.default('10m'),
  /**
   * Scorers of the user's own run in a sandbox only, because they could get the instance's credentials from its
   * metadata service; `open`: also without one.
   */
  own_scorers: z.enum(['sandboxed', 'open']).default('sandboxed'),
  /** Engines that an instance installs before it takes jobs, for its GPUs if it has any. */
  engines: z.array(z.enum(engineEnvironments)).min(1).exactOptional(),
  /** An instance ends itself after so long. */
  lifetime: duration.default('12h'),
  ec2,
});

/**
 * Machines that somebody else starts: a laboratory, Slurm, Kubernetes. They are seen and counted, and never launched.
 */
const joined = z.strictObject({
  provider: z.literal('join'),
  roles: z
    .array(z.enum(roles))
    .min(1)
    .default([...usualRoles]),
});

export const fleetSpec = z.strictObject({
  max_usd_per_hour: usd.optional(),
  max_instances: count.default(100),
  /**
   * What an hour is worth in which runs wait for workers: the price of trainers, of the control machine, and of people.
   */
  waiting_usd_per_hour: usd.default(1),
  pools: z.record(poolName, z.discriminatedUnion('provider', [bought, joined])),
});
export type FleetSpec = Readonly<z.infer<typeof fleetSpec>>;
export type PoolSpec = FleetSpec['pools'][string];
export type BoughtPool = Extract<PoolSpec, { provider: 'ec2' }>;

export const isBought = (pool: PoolSpec): pool is BoughtPool => pool.provider === 'ec2';

/** How the provider of a pool starts an instance: the machine of core/ports/provider.ts, with all that it reads. */
export function machineOf({ provider, ec2 }: BoughtPool) {
  const { region, image, subnets, security_groups, instance_profile, disk_gib } = ec2;
  return {
    ...{ kind: provider, region, image, subnets, securityGroups: security_groups },
    ...(instance_profile !== undefined && { instanceProfile: instance_profile }),
    ...(disk_gib !== undefined && { diskGiB: disk_gib }),
  };
}

/** The pools of which petrel buys and gives back instances. */
export const boughtPools = ({ pools }: FleetSpec): [name: string, pool: BoughtPool][] =>
  Object.entries(pools).flatMap(([name, pool]) => (isBought(pool) ? [[name, pool]] : []));

/** `value`: what the file says. Throws InvalidInputError that names the key, also for bounds that contradict. */
export function checkFleetSpec(value: unknown, where: string): FleetSpec {
  const parsed = fleetSpec.safeParse(value);
  if (!parsed.success) throw invalid(where, parsed.error.issues);
  for (const [name, pool] of boughtPools(parsed.data)) checkBounds(pool, parsed.data, `${where}: pools.${name}`);
  return parsed.data;
}

/** A key that is written wrongly is missing, too: its own name says more. */
function invalid(where: string, issues: readonly z.core.$ZodIssue[]): InvalidInputError {
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const at = issue?.path.join('.') ?? '';
  const message = (issue?.message ?? 'not a fleet')
    .replace(/^Invalid input: /, '')
    .replace(/, received undefined$/, ', got nothing')
    .replace(/, received /, ', got ');
  return new InvalidInputError(`${at === '' ? '' : `${at}: `}${message}`, {
    where,
    hint: 'docs/do/fleet-on-ec2.md shows a fleet.yaml with every key',
  });
}

function checkBounds(pool: BoughtPool, { max_instances }: FleetSpec, where: string): void {
  const refuse = (message: string, hint: string): never => {
    throw new InvalidInputError(message, { where, hint });
  };
  const { min, max, on_demand_floor: floor, markets, lifetime, join_within } = pool;
  if (min > max) refuse(`expected min <= max, got min ${min} and max ${max}`, `raise max to ${min}`);
  if (max > max_instances)
    refuse(
      `expected max <= max_instances (${max_instances}), got ${max}`,
      'raise max_instances of the fleet, or lower max',
    );
  if (floor > max) refuse(`expected on_demand_floor <= max (${max}), got ${floor}`, `lower it to ${max}`);
  if (floor > 0 && !markets.includes('on_demand'))
    refuse('expected the market on_demand for on_demand_floor, got only spot', 'markets: [spot, on_demand]');
  const unpriced = pool.ec2.types.find((type) => pool.ec2.on_demand_usd_per_hour[type] === undefined);
  if (markets.includes('on_demand') && unpriced !== undefined)
    refuse(
      `ec2.on_demand_usd_per_hour: expected a price of each type, got none of ${unpriced}`,
      `ec2: {on_demand_usd_per_hour: {${unpriced}: 0.34}}, with the price of the region`,
    );
  if (secondsOf(join_within) >= secondsOf(lifetime))
    refuse(`expected join_within < lifetime, got ${join_within} and ${lifetime}`, 'raise lifetime');
}

/** Dollars per hour of spot instances, by `type zone`. */
export type SpotPrices = ReadonlyMap<string, number>;

export const spotKey = ({ type, zone }: Pick<Place, 'type' | 'zone'>): string => `${type} ${zone}`;

/**
 * The places where instances of the pool can be bought at present; a spot place without a price is not offered there.
 */
export function placesOf(
  { markets, ec2: { types, subnets, on_demand_usd_per_hour } }: BoughtPool,
  spot: SpotPrices,
): Place[] {
  return types.flatMap((type) =>
    Object.keys(subnets).flatMap((zone): Place[] => {
      const spotUsd = spot.get(spotKey({ type, zone }));
      const fixedUsd = on_demand_usd_per_hour[type];
      return [
        ...(markets.includes('spot') && spotUsd !== undefined
          ? [{ zone, type, market: 'spot' as const, usdPerHour: spotUsd }]
          : []),
        ...(markets.includes('on_demand') && fixedUsd !== undefined
          ? [{ zone, type, market: 'onDemand' as const, usdPerHour: fixedUsd }]
          : []),
      ];
    }),
  );
}

/** `bootSeconds`: as measured; default: what the file says. `count`: as set by `petrel fleet scale`. */
export function plannedPool(
  name: string,
  pool: BoughtPool,
  { spot, bootSeconds, count }: { readonly spot: SpotPrices; readonly bootSeconds?: number; readonly count?: number },
): Pool {
  return {
    name,
    min: count ?? pool.min,
    max: count ?? pool.max,
    onDemandFloor: pool.on_demand_floor,
    places: placesOf(pool, spot),
    bootSeconds: bootSeconds ?? secondsOf(pool.boot),
    idleSeconds: secondsOf(pool.idle),
  };
}
