/**
 * Causes one fault of a run: arms it, waits until a process reaches the point, acts, and measures when the run is back.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isAlive } from '../../infra/stack/process.ts';
import { lockHolder } from '../../infra/stack/lock.ts';
import { lockFolder } from '../../infra/stack/state.ts';
import { poll } from '../../infra/poll.ts';
import type { Standing } from '../inject.ts';
import { logFile, readStack } from '../../infra/stack/index.ts';
import { isStackReady } from '../../infra/stack/read.ts';
import type { StartedRun } from '../loop-under-test.ts';
import type { Bed } from './bed.ts';
import { allFaults } from './pairs.ts';
import type { Fault, Victim } from './pairs.ts';
import { armedFault, strikeTitle } from './plan.ts';
import type { Strike } from './plan.ts';
import { mustEnd, strikeRanks } from './ranks.ts';
import { patienceMs } from '../patience.ts';

/** The cost of a fault, in seconds after it happened. */
export interface Blow {
  readonly strike: Strike;
  /** The process that stopped at the point. */
  readonly stood: string;
  /**
   * Seconds until the supervisor, or its successor, reported the death. Undefined when no supervisor was left, or when
   * the process is not one of its own.
   */
  readonly noticedAfterS: number | undefined;
  /** Seconds until every process of the stack was ready again. */
  readonly wholeAfterS: number;
  /** Seconds until the run's next decision or status entry was committed. */
  readonly committedAfterS: number;
}

interface Context {
  readonly bed: Bed;
  readonly run: StartedRun;
  /** Aborted when the run has ended or is stuck: a fault that has not fired by then never will. */
  readonly signal: AbortSignal;
  /** Faults are carried out one after the other, even when another point is reached at the same time. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
}

const olderCopy = (bed: Bed): string => join(bed.loop.home, 'older');

/** Call it before the run is driven. Resolves when the run has recovered. */
export async function doStrike(context: Context, id: string, strike: Strike): Promise<Blow> {
  const { bed, run, signal, alone } = context;
  const { pair } = strike;
  const waiting = await prepare(context, id, strike);
  bed.injector.arm(armedFault(id, strike, run.runId));
  if (waiting?.identity !== undefined) bed.injector.thaw(waiting.identity);
  const standing = await bed.injector.stands(id, signal).catch((cause: unknown) => {
    throw new Error(`did not fire: ${strikeTitle(strike)}`, { cause });
  });
  const fault = allFaults[pair.fault];
  const [atMs, ranks] = await alone(async () => {
    const now = Date.now();
    const struck = await act(bed, fault, standing);
    bed.injector.arm({ id: `${id}-back`, point: 'decide.after', facts: { runId: run.runId }, action: 'note' });
    if (fault.kills.includes('everything')) await bed.up();
    return [now, struck] as const;
  });
  const committed = bed.injector.fired(`${id}-back`, signal).catch(() => undefined);
  const wholeAt = await whole(bed);
  const back = await committed;
  await mustEnd(ranks);
  const noticedAt = noticed(bed, fault, standing, atMs);
  return {
    strike,
    stood: standing.process,
    noticedAfterS: noticedAt === undefined ? undefined : (noticedAt - atMs) / 1000,
    wholeAfterS: (wholeAt - atMs) / 1000,
    committedAfterS: ((back?.atMs ?? Date.now()) - atMs) / 1000,
  };
}

/**
 * Time from the strike until the supervisor first reported that one of the victims has ended, or that its successor is
 * ready.
 */
function noticed({ loop }: Bed, { kills, replaces }: Fault, standing: Standing, atMs: number): number | undefined {
  if (kills.includes('everything') || (kills.length === 0 && replaces === undefined)) return undefined;
  const victims = [
    ...kills.map((name) => (name === 'standing' ? standing.process : name)),
    ...(replaces === undefined ? [] : [replaces.server]),
  ];
  const telling = new RegExp(`^(\\S+) (?:supervisor \\d+ serves|(?:${victims.join('|')}): .*; restarting)`);
  const times = readFileSync(logFile(loop.home, 'supervisor'), 'utf8')
    .split('\n')
    .map((line) => Date.parse(telling.exec(line)?.[1] ?? ''));
  return times.find((time) => time >= atMs);
}

/** What must happen before the fault can be armed. Returns the process that waits for the arming, if there is one. */
async function prepare(
  { bed, run, signal, alone }: Context,
  id: string,
  { pair, iteration }: Strike,
): Promise<Standing | undefined> {
  const { injector } = bed;
  if (pair.after !== undefined) {
    injector.arm({
      id: `${id}-first`,
      point: pair.after.point,
      facts: { ...pair.after.facts, iteration },
      action: 'stand',
    });
    const standing = await injector.stands(`${id}-first`, signal);
    await alone(() => act(bed, { kills: ['standing'] }, standing));
  } else if (pair.counts === 'none' && pair.when !== 'open') {
    injector.arm({
      id: `${id}-before`,
      point: 'decide.after',
      facts: { kind: 'update', runId: run.runId, iteration: iteration - 1 },
      action: 'stand',
    });
    return await injector.stands(`${id}-before`, signal);
  }
  return undefined;
}

/** Copies the servers' files while a worker holds a job of the first iteration. */
export async function copyStates({ bed, run, signal, alone }: Context): Promise<void> {
  const { injector } = bed;
  rmSync(olderCopy(bed), { recursive: true, force: true });
  const id = `${run.runId}-copy`;
  injector.arm({
    id,
    point: 'job.begin',
    facts: { stage: 'rollout', iteration: 0, runId: run.runId },
    action: 'stand',
  });
  const standing = await injector.stands(id, signal);
  await alone(async () => {
    for (const server of ['nats', 'temporal'] as const) await injector.copyState(server, join(olderCopy(bed), server));
    if (standing.identity !== undefined) injector.thaw(standing.identity);
  });
}

/** Returns the processes of engines that must end because of it. */
async function act(bed: Bed, { kills, replaces, ranks }: Fault, standing: Standing) {
  const { injector } = bed;
  if (replaces !== undefined) {
    const older = join(olderCopy(bed), replaces.server);
    if (replaces.by === 'older copy' && !existsSync(older)) throw new Error('there is no older copy yet');
    await injector.replaceState(replaces.server, replaces.by === 'nothing' ? undefined : older);
  }
  if (kills.includes('everything')) {
    await injector.killEverything();
    if (standing.identity !== undefined && isAlive(standing.identity))
      throw new Error(`everything was killed but ${standing.process}`);
    return [];
  }
  const struck =
    ranks !== undefined && bed.engine !== undefined && standing.identity !== undefined
      ? await strikeRanks(injector, ranks, standing.identity, bed.engine)
      : [];
  await injector.kill(await victimsOf(bed, kills, standing));
  if (!kills.includes('standing') && standing.identity !== undefined) injector.thaw(standing.identity);
  return struck;
}

async function victimsOf(bed: Bed, kills: readonly Victim[], { process, identity }: Standing) {
  // Another fault of the same moment may have killed the stopped process.
  const standing =
    kills.includes('standing') && identity !== undefined && isAlive(identity) ? [{ name: process, identity }] : [];
  const named = await Promise.all(kills.filter((name) => name !== 'standing').map((name) => bed.injector.victim(name)));
  return [...standing, ...named];
}

/** The time at which every process of the stack was ready. */
async function whole(bed: Bed): Promise<number> {
  const { home } = bed.loop;
  const ready = await poll(
    () => {
      const stack = readStack(home);
      return (
        stack !== undefined &&
        isStackReady(stack) &&
        lockHolder(lockFolder(home)) !== undefined &&
        stack.children.every(({ name }) => bed.injector.process(name) !== undefined)
      );
    },
    { everyMs: 20, timeoutMs: patienceMs },
  );
  if (ready !== true)
    throw new Error(`the stack did not become whole again: ${JSON.stringify(readStack(home)?.children)}`);
  return Date.now();
}
