/** One seed: a run with the faults of its plan, and everything that must be true of it afterwards. */
import { setTimeout as delay } from 'node:timers/promises';
import { onePool, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { difference } from './bed.ts';
import type { Bed } from './bed.ts';
import { faults } from './pairs.ts';
import type { Fault } from './pairs.ts';
import { planTitle } from './plan.ts';
import type { Plan } from './plan.ts';
import { copyStates, doStrike } from './strike.ts';
import type { Blow } from './strike.ts';

export interface SeedResult {
  readonly plan: Plan;
  readonly blows: readonly Blow[];
  readonly seconds: number;
}

/** How often the run's state is looked at: it ends by itself, which the store alone tells whatever else is dead. */
const lookMs = 100;
const patienceMs = 60_000;

/** Throws an error that names the seed and what was wrong. */
export async function runSeed(bed: Bed, plan: Plan): Promise<SeedResult> {
  try {
    return await disturb(bed, plan);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${planTitle(plan)}\n${text}\nplay it again: npm run test:recovery -- --from ${plan.seed} --seeds 1`, { cause: error });
  } finally {
    bed.injector.disarmAll();
  }
}

async function disturb(bed: Bed, plan: Plan): Promise<SeedResult> {
  const startedAt = performance.now();
  await bed.up(plan.layout === 'one' ? onePool : separatePools);
  const expected = await bed.reference();
  const run = await bed.loop.create(bed.recipe());
  const over = new AbortController();
  const context = { bed, run, signal: over.signal, alone: oneAtATime() };
  const needsCopies = plan.strikes.some(({ pair }) => (faults[pair.fault] as Fault).replaces?.by === 'older copy');
  const work = [...plan.strikes.map((strike, i) => doStrike(context, `${run.runId}-${i + 1}`, strike)), ...(needsCopies ? [copyStates(context)] : [])];
  const settled = Promise.allSettled(work);
  await bed.loop.drive(run);
  const state = await ended(bed, run, over, settled);
  const failures = (await settled).flatMap((one) => (one.status === 'rejected' ? [String(one.reason instanceof Error ? one.reason.message : one.reason)] : []));
  if (state !== 'completed') failures.unshift(`the run is ${state}: ${JSON.stringify((await run.log.status())?.reason)}`);
  const fault = await faultOf(bed, run, expected, state);
  if (fault !== undefined) failures.push(fault);
  if (failures.length > 0) throw new Error(`${run.runId}:\n${failures.join('\n')}\n${(await bed.loop.lines(run)).slice(-25).join('\n')}`);
  const blows = (await Promise.all(work)).filter((blow): blow is Blow => blow !== undefined);
  return { plan, blows, seconds: (performance.now() - startedAt) / 1000 };
}

/** The run's last state. A fault that has not fired by then never will. */
async function ended(bed: Bed, run: StartedRun, over: AbortController, settled: Promise<unknown>): Promise<string> {
  const deadline = performance.now() + patienceMs;
  let state = 'queued';
  try {
    while (performance.now() < deadline) {
      state = (await run.log.status())?.state ?? 'queued';
      if (['completed', 'failed', 'cancelled', 'stopped', 'paused'].includes(state)) return state;
      await delay(lookMs);
    }
    return `stuck in state ${state}`;
  } finally {
    // What was armed for the last moments may be firing just now.
    await Promise.race([settled, delay(500)]);
    over.abort(new Error(`the run is ${state}`));
  }
}

async function faultOf(bed: Bed, run: StartedRun, expected: readonly unknown[], state: string): Promise<string | undefined> {
  return state === 'completed' ? difference(await bed.essence(run), expected) : undefined;
}

function oneAtATime(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
