/**
 * Shared by the tests of schedules: commands with the loop's home, times that are fired by hand, and waiting for their
 * effects.
 */
import { expect } from 'vitest';
import type { ScheduleSummary } from '../api/schedules/summary.ts';
import type { Tree } from '../core/recipe/index.ts';
import { keys } from '../core/records/keys.ts';
import type { FiringRecord } from '../core/records/schema.ts';
import { isoSeconds } from '../core/schedules/decide.ts';
import type { FiringOutcome } from '../core/wire/workflow.ts';
import { startFiring, temporalScheduleId } from '../infra/temporal/reconcile-schedule.ts';
import { RunLog } from '../log/run/run-log.ts';
import { ScheduleLog } from '../log/schedules/schedule-log.ts';
import { actionWorkflowId } from '../infra/temporal/schedules.ts';
import { poll } from '../infra/poll.ts';
import { runWords } from './cli.ts';
import type { CommandResult } from './cli.ts';
import { LoopUnderTest } from './loop-under-test.ts';
import type { StartedRun } from './loop-under-test.ts';
import { patienceMs } from './patience.ts';

/** A run that ends at once. */
export const short: Tree = { trainer: { total_training_steps: 1 } };
/** A run that continues until it is ended. */
export const long: Tree = { trainer: { total_training_steps: 100_000 } };

/**
 * Options of a schedule that only the test fires. Intervals count from 1970, so days would begin at midnight; these
 * begin in 2030.
 */
export const rarely = ['--every', '3660d'] as const;

/** The n-th second of 2026. */
export const second = (n: number): string => isoSeconds(new Date(Date.UTC(2026, 0, 1, 0, 0, n)));

export class SchedulesUnderTest {
  readonly loop: LoopUnderTest;

  constructor(loop = new LoopUnderTest()) {
    this.loop = loop;
  }

  petrel(...words: string[]): Promise<CommandResult> {
    return runWords(this.loop.home, words);
  }

  async add(name: string, recipe: Tree, ...options: string[]): Promise<ScheduleLog> {
    await this.petrel('schedule', 'add', this.loop.recipeFile(name, recipe), ...options);
    return new ScheduleLog(this.loop.store, name);
  }

  async show(name: string): Promise<ScheduleSummary> {
    return (await this.petrel('schedule', 'show', name, '--json')).json();
  }

  /** Starts the workflow of a time; other starts of it do not matter. */
  async send(log: ScheduleLog, time: string, triggered = true): Promise<string> {
    const generation = (await log.record())?.generation ?? 0;
    await startFiring(this.loop.client, log, { generation, time, triggered });
    return actionWorkflowId(`${temporalScheduleId(log)}-g${generation}`, new Date(time));
  }

  /** Does what `send` does, but returns the workflow's answer. */
  async fire(log: ScheduleLog, time: string, triggered = true): Promise<FiringOutcome> {
    return this.loop.client.workflow
      .getHandle(await this.send(log, time, triggered))
      .result() as Promise<FiringOutcome>;
  }

  async startedBy(log: ScheduleLog, time: string): Promise<StartedRun> {
    const { outcome, runId } = await this.fire(log, time);
    expect(outcome).toBe('started');
    return this.runOf({ runId });
  }

  runOf({ runId }: { readonly runId?: string | null | undefined }): StartedRun {
    if (runId === undefined || runId === null) throw new Error('no run was started');
    return { runId, log: new RunLog(this.loop.store, runId) };
  }

  /** Cancels the run, once it exists, and waits for its end. The decision for its time is written before the run. */
  async end(run: StartedRun): Promise<void> {
    await this.until(`${run.runId} written down`, async () => (await run.log.status.newest()) !== undefined);
    await this.petrel('cancel', run.runId, '-y');
    await this.loop.reaches(run, 'cancelled');
  }

  /** The newest entry of the time, once an entry has this outcome. */
  async decided(log: ScheduleLog, time: string, outcome: FiringRecord['outcome']): Promise<FiringRecord> {
    return this.until(`${log.name} of ${time} ${outcome}`, async () =>
      (await log.view()).firings.find((one) => one.time === time && one.outcome === outcome),
    );
  }

  /** Ids of the runs that have this name. */
  async runsNamed(name: string): Promise<string[]> {
    return (await this.loop.store.children(keys.runs))
      .map((id) => id.replace('/', ''))
      .filter((id) => id.startsWith(`${name}-`));
  }

  async until<T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
    const answer = await poll(probe, { everyMs: 50, timeoutMs: patienceMs });
    if (answer === undefined || answer === false) throw new Error(`it did not come to ${what}`);
    return answer;
  }
}

/** Decisions as `second outcome`. */
export async function outcomes(log: ScheduleLog): Promise<string[]> {
  return (await log.entries()).map(({ time, outcome }) => `${Number(time.slice(17, 19))} ${outcome}`);
}
