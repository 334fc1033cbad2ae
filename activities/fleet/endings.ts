/**
 * What becomes of instances: ready, to leave, gone. Every ending is recorded once, and with it the time until which the
 * instance is billed.
 */
import type { Ending, FleetRecord } from '../../core/fleet/records.ts';
import { boughtPools, secondsOf } from '../../core/fleet/spec.ts';
import type { FleetSpec } from '../../core/fleet/spec.ts';
import { placeName } from '../../core/fleet/types.ts';
import type { CloudInstance } from '../../core/ports/provider.ts';
import type { Presence } from '../../core/wire/messages.ts';
import type { FleetLog, KnownInstance } from '../../log/fleet/fleet-log.ts';
import type { FleetPorts } from '../ports/fleet.ts';

/** A machine that was told to leave has so long to end its jobs. */
const leaveMs = 120_000;
/** A cloud may not show an instance that it has launched since then. */
const visibleMs = 60_000;

/**
 * An instance that the store does not know is seen twice before it is ended: its launch may be about to be answered.
 */
export class Strangers {
  #seen = new Set<string>();

  /** Returns the ids that were strangers the last time, too. */
  again(ids: readonly string[]): string[] {
    const twice = ids.filter((id) => this.#seen.has(id));
    this.#seen = new Set(ids);
    return twice;
  }
}

export interface Seen {
  readonly clouds: ReadonlyMap<string, { readonly region: string; readonly instance: CloudInstance }>;
  /** Workers' presences, by the machine's name in NATS. */
  readonly present: ReadonlyMap<string, Presence>;
  readonly now: Date;
}

/** Records instances that have ended by themselves. */
export async function noteGone(
  ports: FleetPorts,
  log: FleetLog,
  all: readonly KnownInstance[],
  seen: Seen,
): Promise<void> {
  for (const one of all) {
    const cloud = seen.clouds.get(one.id)?.instance;
    const fresh = seen.now.getTime() - Date.parse(one.launchedAt) < visibleMs;
    const gone = cloud === undefined ? !fresh : cloud.state === 'ended' || cloud.state === 'ending';
    if (!gone) continue;
    const ending: Ending = one.leaving?.ending ?? (cloud?.interrupted === true ? 'interrupted' : 'lost');
    await noteEnded(ports, log, one, ending, one.leaving?.because ?? whyGone(cloud), seen.now);
  }
}

/** The reason why an instance is gone, when nobody decided to end it. */
const whyGone = (cloud: CloudInstance | undefined): string =>
  cloud?.interrupted === true
    ? 'the cloud took it back'
    : `it ended without a word${cloud?.reason === undefined ? '' : ` (${cloud.reason})`}`;

/** Records instances whose workers have announced themselves to a control process that died before it could. */
export async function noteReady(log: FleetLog, all: readonly KnownInstance[], { present, now }: Seen): Promise<void> {
  for (const { id, joined, ready } of all)
    if (joined !== undefined && ready === undefined && present.has(joined.instance))
      await log.noteReady({ id, at: now.toISOString() });
}

/**
 * Decides that instances leave which have not joined in time, whose workers have not announced themselves in time after
 * that, or which have expired. One that was admitted by a control process that died before it could say so may never
 * come.
 */
export async function noteOverdue(
  log: FleetLog,
  all: readonly KnownInstance[],
  spec: FleetSpec,
  now: Date,
): Promise<void> {
  const pools = new Map(boughtPools(spec));
  for (const { id, launch, launchedAt, joined, ready, leaving } of all) {
    if (leaving !== undefined) continue;
    const within = secondsOf(pools.get(launch.pool)?.join_within ?? '');
    const waited = (now.getTime() - Date.parse(joined?.at ?? launchedAt)) / 1_000;
    const missing =
      joined === undefined ? 'it has not joined' : 'it has joined, and its worker has not announced itself';
    const leave = (ending: Ending, because: string) => log.noteLeaving({ id, at: now.toISOString(), ending, because });
    if (ready === undefined && waited > within) await leave('never-joined', `${missing} within ${within} s`);
    else if (now.toISOString() > launch.expires) await leave('expired', `its lifetime ended at ${launch.expires}`);
  }
}

/** Decides that instances leave which people do not want any more. */
export async function noteUnwanted(
  log: FleetLog,
  all: readonly KnownInstance[],
  { spec, drained }: FleetRecord,
  now: Date,
): Promise<void> {
  const pools = new Map(boughtPools(spec));
  for (const { id, launch, leaving } of all) {
    if (leaving !== undefined) continue;
    const { type, zone } = launch.place;
    const ec2 = pools.get(launch.pool)?.ec2;
    const isNamed = ec2?.types.includes(type) && ec2.subnets[zone] !== undefined;
    const leave = (ending: Ending, because: string) => log.noteLeaving({ id, at: now.toISOString(), ending, because });
    if (drained.includes(id)) await leave('drained', 'petrel fleet drain');
    else if (ec2 === undefined) await leave('unneeded', 'its pool was removed');
    else if (!isNamed) await leave('unneeded', `its pool has no ${type} in ${zone} any more`);
  }
}

/**
 * Decides that instances leave which the cloud expects to take back, once as many others are ready as the pool is to
 * have.
 */
export async function noteReplaced(
  log: FleetLog,
  all: readonly KnownInstance[],
  { present, now }: Seen,
  wanted: readonly { readonly pool: string; readonly count: number }[],
): Promise<void> {
  for (const { pool, count } of wanted) {
    const ready = all.filter(
      ({ launch, ready: is, leaving }) => launch.pool === pool && is !== undefined && leaving === undefined,
    );
    const isAtRisk = ({ joined }: KnownInstance) => present.get(joined?.instance ?? '')?.atRisk === true;
    const [atRisk, safe] = [ready.filter(isAtRisk), ready.filter((one) => !isAtRisk(one))];
    if (safe.length < count) continue;
    const because = 'the cloud expects to take it back, and its successor is ready';
    for (const { id } of atRisk) await log.noteLeaving({ id, at: now.toISOString(), ending: 'unneeded', because });
  }
}

/** Ends instances that are to leave, once they are at rest. */
export async function endLeaving(
  ports: FleetPorts,
  log: FleetLog,
  all: readonly KnownInstance[],
  seen: Seen,
): Promise<void> {
  for (const one of all) {
    const { leaving, joined } = one;
    if (leaving === undefined) continue;
    const isThere = joined !== undefined && seen.present.has(joined.instance);
    const isLate = seen.now.getTime() - Date.parse(leaving.at) > leaveMs;
    if (isThere && !isLate) {
      ports.tellToLeave(joined.instance);
      continue;
    }
    await ports.provider.terminate(one.launch.machine.region, [one.id]);
    await noteEnded(ports, log, one, leaving.ending, leaving.because, seen.now);
  }
}

async function noteEnded(
  ports: FleetPorts,
  log: FleetLog,
  { id, launch }: KnownInstance,
  ending: Ending,
  because: string,
  now: Date,
): Promise<void> {
  if (await log.noteEnded({ id, at: now.toISOString(), ending, because }))
    ports.say(`${launch.pool}: ${id} (${placeName(launch.place)}) has ended, ${ending}: ${because}`);
}

/** Which of the instances at a place leave: those without jobs first, and of these the youngest. */
export function mostIdle(
  all: readonly KnownInstance[],
  present: ReadonlyMap<string, Presence>,
  count: number,
): readonly KnownInstance[] {
  const jobs = ({ joined }: KnownInstance) => (joined && present.get(joined.instance)?.jobs.length) ?? 0;
  return [...all]
    .sort((a, b) => jobs(a) - jobs(b) || b.launchedAt.localeCompare(a.launchedAt) || a.id.localeCompare(b.id))
    .slice(0, count);
}
