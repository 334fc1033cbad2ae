/**
 * Runs trainings one after another, sometimes two in parallel, under random faults. The stack is measured after each
 * round, when it is idle.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { lockHolder } from '../../infra/stack/lock.ts';
import { isStackReady, readStack } from '../../infra/stack/read.ts';
import { lockFolder } from '../../infra/stack/state.ts';
import { poll } from '../../infra/poll.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { oneAtATime } from '../one-at-a-time.ts';
import type { Alone } from '../one-at-a-time.ts';
import { Bed, difference } from '../recovery/bed.ts';
import type { Essence } from '../recovery/bed.ts';
import { Seeded } from '../recovery/seeded.ts';
import { chooseBlows, soakPools, strike } from './blows.ts';
import type { Blow } from './blows.ts';
import { diskUse } from './disk.ts';
import type { DiskUse } from './disk.ts';
import { listeningPorts, takeCensus } from './processes.ts';
import type { Census } from './processes.ts';
import { chooseTrainings, trainings } from './trainings.ts';
import type { Training } from './trainings.ts';

export interface TrainingResult {
  readonly round: number;
  readonly training: string;
  readonly runId: string;
  readonly blows: readonly Blow[];
  readonly seconds: number;
  /** The faults of the run; empty when it is complete, verified, and equal to the undisturbed one. */
  readonly problems: readonly string[];
}

/** Measurements of the idle stack after a round. */
export interface Rest {
  readonly round: number;
  readonly runs: number;
  readonly census: Census;
  readonly disk: DiskUse;
}

export interface SoakResult {
  readonly trainings: readonly TrainingResult[];
  readonly rests: readonly Rest[];
  /** Incomplete files of dead writers: how many the store removed, and how many remained. */
  readonly leftovers: number;
  readonly temporary: readonly string[];
  /** Processes and ports that remained after the stack was stopped. */
  readonly left: readonly string[];
  /** Why the soak ended early. */
  readonly broken: readonly string[];
}

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** True: no faults at all. */
  readonly calm: boolean;
  readonly store?: string;
  readonly say: (line: string) => void;
}

const patienceMs = 300_000;

export async function soak({ minutes, seed, calm, store, say }: SoakOptions): Promise<SoakResult> {
  const bed = new Bed(store);
  // Leftovers in the machine's temporary folder are found, too.
  process.env['TMPDIR'] = join(bed.loop.home, 'tmp');
  mkdirSync(process.env['TMPDIR'], { recursive: true });
  await bed.loop.up(soakPools);
  const table = trainings(bed.loop.validationFile);
  const references = new Map<string, Essence>();
  const results: TrainingResult[] = [];
  const rests: Rest[] = [];
  const until = performance.now() + minutes * 60_000;
  const stopped = interruption();
  const broken: string[] = [];
  try {
    for (let round = 1; performance.now() < until && !stopped.aborted; round++) {
      const seeded = new Seeded(seed * 100_003 + round);
      const chosen = chooseTrainings(table, seeded);
      for (const training of chosen)
        if (!references.has(training.name)) references.set(training.name, await undisturbed(bed, training));
      const alone = oneAtATime();
      const made = await Promise.all(
        chosen.map((training) =>
          disturbed(
            { bed, round, alone, reference: references.get(training.name) ?? [] },
            training,
            calm || isCalm(round) ? [] : chooseBlows(training, seeded),
          ),
        ),
      );
      for (const result of made) say(line(result));
      results.push(...made);
      rests.push(await atRest(bed, round, results.length + references.size));
    }
  } catch (error) {
    broken.push(`it ended before its time: ${messageOf(error)}`);
  }
  // The janitor removes files of dead writers only after hours, so that slow writers are not disturbed.
  const leftovers = (await bed.loop.store.removeLeftovers?.(new Date())) ?? 0;
  const { temporary } = diskUse(bed.loop.home);
  return { trainings: results, rests, leftovers, temporary, left: await removed(bed, rests), broken };
}

/** Thirty rounds with faults, then sixty without, so that processes live long enough to show what grows in them. */
const isCalm = (round: number): boolean => (round - 1) % 90 >= 30;

async function undisturbed(bed: Bed, training: Training): Promise<Essence> {
  const run = await bed.loop.start(training.recipe);
  const state = await ended(run);
  if (state !== 'completed')
    throw new Error(
      `${run.runId}: nothing disturbs it, and it is ${state}: ${JSON.stringify((await run.log.status.newest())?.reason)}`,
    );
  return bed.essence(run);
}

interface Round {
  readonly bed: Bed;
  readonly round: number;
  readonly reference: Essence;
  /** Faults are carried out one after the other. */
  readonly alone: Alone;
}

async function disturbed(
  { bed, round, reference, alone }: Round,
  training: Training,
  blows: readonly Blow[],
): Promise<TrainingResult> {
  const startedAt = performance.now();
  const over = new AbortController();
  const run = await bed.loop.create(training.recipe);
  const done = strike(bed, run.runId, blows, over.signal, alone);
  // A fault of the parallel run may have stopped the servers.
  await alone(() => bed.loop.drive(run, training.kind));
  const state = await ended(run);
  over.abort(new Error('the run has ended'));
  const problems: string[] = [];
  const struck = await done.catch((error: unknown) => {
    problems.push(`a fault could not be done: ${messageOf(error)}`);
    return [];
  });
  if (state !== 'completed')
    problems.push(
      `it is ${state}: ${JSON.stringify((await run.log.status.newest())?.reason)}\n${(await bed.loop.lines(run)).slice(-15).join('\n')}`,
    );
  const verdict = await verifyLedger(bed.loop.store, run.runId, { deep: true });
  problems.push(
    ...verdict.faults.map(({ key, expected, found }) => `ledger: ${key}: expected ${expected}, found ${found}`),
  );
  const unlike = state === 'completed' ? difference(await bed.essence(run), reference) : undefined;
  if (unlike !== undefined) problems.push(unlike);
  return {
    round,
    training: training.name,
    runId: run.runId,
    blows: struck,
    seconds: (performance.now() - startedAt) / 1000,
    problems,
  };
}

/** Reads only the store, because any process may be dead. */
async function ended({ log }: StartedRun): Promise<string> {
  const state = await poll(
    async () => {
      const status = await log.status.newest();
      return status !== undefined && ['completed', 'failed', 'cancelled', 'stopped', 'paused'].includes(status.state)
        ? status.state
        : undefined;
    },
    { everyMs: 100, timeoutMs: patienceMs },
  );
  return state ?? `stuck in state ${(await log.status.newest())?.state}`;
}

/** Every process is ready again, and no work is in progress. */
async function atRest(bed: Bed, round: number, runs: number): Promise<Rest> {
  const { home } = bed.loop;
  bed.injector.disarmAll();
  const whole = await poll(
    () => {
      const stack = readStack(home);
      return (
        stack !== undefined &&
        isStackReady(stack) &&
        lockHolder(lockFolder(home)) !== undefined &&
        stack.children.every(({ name }) => bed.injector.process(name) !== undefined)
      );
    },
    { everyMs: 50, timeoutMs: 60_000 },
  );
  if (whole !== true)
    throw new Error(
      `the stack did not become whole again after round ${round}: ${JSON.stringify(readStack(home)?.children)}`,
    );
  // The children of a dead process may end a moment later, so only those that remain count as leaks.
  const calm = await poll(
    () => {
      const census = takeCensus(home, round);
      return census.orphans.length === 0 ? census : undefined;
    },
    { everyMs: 100, timeoutMs: 15_000 },
  );
  return { round, runs, census: calm ?? takeCensus(home, round), disk: diskUse(home) };
}

async function removed(bed: Bed, rests: readonly Rest[]): Promise<readonly string[]> {
  const pids = rests.flatMap(({ census }) =>
    census.samples.map(({ incarnation }) => Number(incarnation.split('-')[0])),
  );
  const problem = await bed.remove().then(
    () => [],
    (error: unknown) => [messageOf(error)],
  );
  const ports = listeningPorts([...new Set(pids)].filter((pid) => existsSync(`/proc/${pid}`)));
  return [...problem, ...ports.map((port) => `port ${port}`)];
}

/** Includes the cause, because the messages of clients say little. */
const messageOf = (error: unknown): string =>
  error instanceof Error
    ? [error.message, ...(error.cause === undefined ? [] : [messageOf(error.cause)])].join(': ')
    : String(error);

/** The first Ctrl-C ends the soak after the current round and prints the tables. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  process.once('SIGINT', () => controller.abort());
  return controller.signal;
}

function line({ round, training, blows, seconds, problems }: TrainingResult): string {
  const struck =
    blows.map(({ victim, iteration, moment }) => `${victim} at ${moment.title} ${iteration}`).join(', ') ||
    'undisturbed';
  return `${problems.length === 0 ? 'ok    ' : 'FAILED'} round ${round} ${training} ${seconds.toFixed(1)} s: ${struck}${problems.map((problem) => `\n  ${problem}`).join('')}`;
}
