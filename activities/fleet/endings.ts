/** Giving back, and noticing what is gone. Every ending is recorded once, and with it the time until which the instance is billed. */
import type { Ending } from '../../core/fleet/records.ts';
import { placeName } from '../../core/fleet/types.ts';
import type { CloudInstance } from '../../core/ports/provider.ts';
import type { Presence } from '../../core/wire/messages.ts';
import type { FleetLog, KnownInstance } from '../../infra/store/fleet-log.ts';
import type { FleetPorts } from './ports.ts';

/** A machine that was told to leave has so long to end its jobs. */
const leaveMs = 120_000;
/** A cloud may not show an instance that it has launched since then. */
const visibleMs = 60_000;

/** An instance that the store does not know is seen twice before it is ended: its launch may be about to be answered. */
export class Strangers {
  #seen = new Set<string>();

  /** Those that were strangers the last time, too. */
  again(ids: readonly string[]): string[] {
    const twice = ids.filter((id) => this.#seen.has(id));
    this.#seen = new Set(ids);
    return twice;
  }
}

export interface Seen {
  readonly clouds: ReadonlyMap<string, CloudInstance>;
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
    const cloud = seen.clouds.get(one.id);
    const fresh = seen.now.getTime() - Date.parse(one.launchedAt) < visibleMs;
    const gone = cloud === undefined ? !fresh : cloud.state === 'ended' || cloud.state === 'ending';
    if (!gone) continue;
    const ending: Ending = one.leaving?.ending ?? (cloud?.interrupted === true ? 'interrupted' : 'lost');
    await noteEnded(ports, log, one, ending, one.leaving?.because ?? whyGone(cloud), seen.now);
  }
}

/** Where nobody had decided it. */
const whyGone = (cloud: CloudInstance | undefined): string =>
  cloud?.interrupted === true ? 'the cloud took it back' : 'it ended without a word';

/** Decides which instances are to leave because of their age: they have not joined in time, or have expired. */
export async function noteOverdue(
  log: FleetLog,
  all: readonly KnownInstance[],
  joinWithinMs: (pool: string) => number,
  now: Date,
): Promise<void> {
  for (const { id, launch, launchedAt, joined, leaving } of all) {
    if (leaving !== undefined) continue;
    const [age, within] = [now.getTime() - Date.parse(launchedAt), joinWithinMs(launch.pool)];
    const leave = (ending: Ending, because: string) => log.noteLeaving({ id, at: now.toISOString(), ending, because });
    if (joined === undefined && age > within)
      await leave('never-joined', `it has not joined within ${Math.round(within / 1_000)} s`);
    else if (now.toISOString() > launch.expires) await leave('expired', `its lifetime ended at ${launch.expires}`);
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
