/** Runs one seed: a run with the faults of its plan, and the checks after it. */
import { setTimeout as delay } from 'node:timers/promises';
import { median } from '../../bench/clock.ts';
import { verifyLedger } from '../../api/ledger/verify.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { onePool, separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import { difference } from './bed.ts';
import type { Bed, Essence } from './bed.ts';
import { variantOf } from './engine-choice.ts';
import type { Variant } from './engine-choice.ts';
import { allFaults } from './pairs.ts';
import type { Layout } from './pairs.ts';
import { iterations, planTitle } from './plan.ts';
import type { Plan } from './plan.ts';
import { kindOf, samples } from './subjects.ts';
import type { Subject } from './subjects.ts';
import { copyStates, doStrike } from './strike.ts';
import type { Blow } from './strike.ts';
import { patienceMs } from '../patience.ts';

export interface SeedResult {
  readonly plan: Plan;
  readonly blows: readonly Blow[];
  /** The whole time, except for starting the stack and for the undisturbed run. */
  readonly seconds: number;
  /** Seconds from the start of the run to its end. */
  readonly runSeconds: number;
}

const restStates = ['completed', 'failed', 'cancelled', 'stopped', 'paused'];
/**
 * How often the run's state is read. The run ends by itself, and only the store can be read when processes are dead.
 */
const lookMs = 100;

/** Throws an error with the seed and all faults that were found. */
export async function runSeed(bed: Bed, plan: Plan): Promise<SeedResult> {
  try {
    return await disturb(bed, plan);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${planTitle(plan)}\n${text}\nplay it again: ${commandOf(plan)}`, { cause: error });
  } finally {
    bed.injector.disarmAll();
  }
}

function commandOf({ seed, subject, engine }: Plan): string {
  const what =
    engine === undefined
      ? `--subject '${subject}'`
      : `--engine ${[engine.trainer, ...(engine.sampler === 'native' ? [] : [engine.sampler])].join(',')}`;
  return `npm run test:recovery -- --from ${seed} --seeds 1 ${what}`;
}

async function disturb(bed: Bed, plan: Plan): Promise<SeedResult> {
  await bed.up(poolsOf(plan.layout, plan.subject, bed.engine !== undefined));
  const variant = plan.engine && variantOf(plan.engine, plan.seed);
  const expected =
    variant === undefined ? await bed.reference(plan.subject) : await engineReference(bed, plan, variant);
  const startedAt = performance.now();
  const run = await bed.loop.create(bed.recipe(plan.subject, variant));
  const over = new AbortController();
  const context = { bed, run, signal: over.signal, alone: oneAtATime() };
  const needsCopies = plan.strikes.some(({ pair }) => allFaults[pair.fault].replaces?.by === 'older copy');
  const work = [
    ...plan.strikes.map((strike, i) => doStrike(context, `${run.runId}-${i + 1}`, strike)),
    ...(needsCopies ? [copyStates(context)] : []),
  ];
  const settled = Promise.allSettled(work);
  const drivenAt = performance.now();
  await bed.loop.drive(run, kindOf(plan.subject));
  const state = await ended(run, over, work);
  const runSeconds = (performance.now() - drivenAt) / 1000;
  const failures = (await settled).flatMap((one) =>
    one.status === 'rejected' ? [String(one.reason instanceof Error ? one.reason.message : one.reason)] : [],
  );
  if (state !== 'completed')
    failures.unshift(`the run is ${state}: ${JSON.stringify((await run.log.status.newest())?.reason)}`);
  else failures.push(...(await faultsOf(bed, run, plan, expected)));
  if (failures.length > 0)
    throw new Error(`${run.runId}:\n${failures.join('\n')}\n${(await bed.loop.lines(run)).slice(-25).join('\n')}`);
  const blows = (await Promise.all(work)).filter((blow): blow is Blow => blow !== undefined);
  return { plan, blows, seconds: (performance.now() - startedAt) / 1000, runSeconds };
}

/**
 * The run without faults, where the disturbed one promises its bits: on the stack, because the engine is the worker's.
 */
function engineReference(bed: Bed, { subject }: Plan, variant: Variant): Promise<Essence | undefined> {
  if (variant.deterministic !== true) return Promise.resolve(undefined);
  return bed.referenceOnStack(subject, async () => {
    const run = await bed.loop.create(bed.recipe(subject, variant));
    await bed.loop.drive(run, kindOf(subject));
    const state = await ended(run, new AbortController(), []);
    if (state !== 'completed') throw new Error(`${run.runId}, which nobody disturbed, is ${state}`);
    return run;
  });
}

function poolsOf(layout: Layout, subject: Subject, onEngine: boolean): readonly WorkerPool[] {
  if (layout === 'one') return onePool;
  if (!samples(subject)) return separatePools.filter(({ roles }) => roles.includes('trainer'));
  const trainers = subject === 'critic on its own trainer' ? 2 : 1;
  return separatePools.map((pool) => {
    if (pool.roles.includes('trainer')) return { ...pool, count: trainers };
    // Another process of a sampler takes half a minute to start.
    return onEngine && pool.roles.includes('rollout') ? { ...pool, count: 1 } : pool;
  });
}

/** Duration of an undisturbed run in this layout: the median of several, after one that warms the processes up. */
export async function undisturbedSeconds(bed: Bed, layout: Layout, subject: Subject): Promise<number> {
  await bed.up(poolsOf(layout, subject, false));
  const seconds: number[] = [];
  for (let i = 0; i < 4; i++) {
    const run = await bed.loop.create(bed.recipe(subject));
    const drivenAt = performance.now();
    await bed.loop.drive(run, kindOf(subject));
    const state = await ended(run, new AbortController(), []);
    if (state !== 'completed') throw new Error(`${run.runId}, which nobody disturbed, is ${state}`);
    seconds.push((performance.now() - drivenAt) / 1000);
  }
  return median(seconds.slice(1));
}

/**
 * The run's last state. A fault that has not fired by then never will. A run counts as stuck when it makes no progress
 * for a long time.
 */
async function ended(run: StartedRun, over: AbortController, blows: readonly Promise<unknown>[]): Promise<string> {
  let settled = 0;
  for (const blow of blows)
    blow.then(
      () => settled++,
      () => settled++,
    );
  let seen = '';
  let movedAt = performance.now();
  try {
    for (;;) {
      const state = (await run.log.status.newest())?.state ?? 'queued';
      if (restStates.includes(state)) return state;
      const now = `${state} ${(await run.log.head())?.position} ${settled}`;
      if (now !== seen) movedAt = performance.now();
      seen = now;
      if (performance.now() - movedAt > patienceMs) return `stuck in state ${state}`;
      await delay(lookMs);
    }
  } finally {
    // A fault that was armed for the last moments may be firing now.
    if (blows.length > settled) await Promise.race([Promise.allSettled(blows), delay(500)]);
    over.abort(new Error('the run has ended'));
  }
}

/** The faults of a run, from its own objects and from a comparison with the undisturbed run. */
async function faultsOf(bed: Bed, run: StartedRun, plan: Plan, expected: Essence | undefined): Promise<string[]> {
  const { faults: found } = await verifyLedger(bed.loop.store, run.runId, { deep: true });
  bed.loop.runs.delete(run); // need not be verified again when the bed is removed
  const made = await bed.essence(run);
  const unlike = expected === undefined ? await brokenPromise(run, plan, made) : difference(made, expected);
  return [
    ...found.map(({ key, expected: wanted, found: is }) => `ledger: ${key}: expected ${wanted}, found ${is}`),
    ...(unlike === undefined ? [] : [unlike]),
  ];
}

/**
 * What a run breaks whose samples cannot be made again: it has every iteration and its validation. An update that is
 * done again opens a term of its own, unless the run promises the bits of updates.
 */
async function brokenPromise(run: StartedRun, plan: Plan, made: Essence): Promise<string | undefined> {
  // The records of the iterations, and of the validation after the last one.
  if (made.length !== iterations + 1) return `${made.length} records instead of ${iterations + 1}`;
  const terms = (await run.log.chain()).filter(({ record }) => record.reason === 'replay').length;
  const promises = plan.engine !== undefined && variantOf(plan.engine, plan.seed).deterministic === 'replay';
  if (promises && terms > 0) return `${terms} updates had other bits when they were done again`;
  const doneAgain = plan.strikes.some(({ pair }) => pair.point === 'recover.replay');
  return !promises && doneAgain && terms === 0 ? 'an update was done again, and no term says so' : undefined;
}
