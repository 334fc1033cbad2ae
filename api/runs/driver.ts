/** Starts, tells, ends and watches the workflow of a run, by the run's id. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { errorToJson, RetryableError } from '../../core/errors.ts';
import type { DesiredState } from '../../core/run-states.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import type { DrivenRun } from '../../infra/stack/driven-run.ts';
import { ensureStack, readStack } from '../../infra/stack/index.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { endRunWorkflow, runningWorkflow, tellRunWorkflow } from '../../infra/temporal/run-workflow.ts';
import { poll } from '../../infra/poll.ts';
import type { ApiContext } from '../context.ts';
import type { FoundRun } from '../stores/find.ts';

/** `running`: a workflow drives the run. `ended`: no workflow drives it. */
export type WorkflowState = 'running' | 'ended';

export interface RunDriver {
  readonly stack: StackInfo;
  workflow(): Promise<WorkflowState>;
  /**
   * Tells the workflow a desired state that is recorded in the store. Resolves with false when no workflow drives the
   * run. Throws RetryableError `TemporalUnreachable` when the server does not answer.
   */
  signal(desired: DesiredState): Promise<boolean>;
  /** Notes that this process is about to queue the run and start its workflow. */
  noteToStart(): Promise<void>;
  /** Starts the workflow, or joins the running one. A workflow that is about to end is waited for first. */
  start(ending: boolean): Promise<void>;
  /** Terminates the workflow, whatever it waits for. Does nothing when none runs. */
  end(why: string): Promise<void>;
  /** Resolves when the workflow has ended, with success or not. Waits while the server cannot be reached. */
  ended(): Promise<void>;
  close(): Promise<void>;
}

/** How long a command that can do without Temporal waits for its answer. */
const answerMs = 3_000;

/** Undefined when the stack is down, or when its Temporal server does not answer. */
export async function driverIfUp(run: FoundRun, home: string): Promise<RunDriver | undefined> {
  const stack = readStack(home);
  if (stack === undefined) return undefined;
  try {
    return await connectDriver(run, home, stack, answerMs);
  } catch (error) {
    if (error instanceof RetryableError) return undefined;
    throw error;
  }
}

/** Starts the stack when it is down. */
export async function driverAfterUp(run: FoundRun, { home, notice }: ApiContext): Promise<RunDriver> {
  return connectDriver(run, home, await ensureStack({ home, onProgress: notice }));
}

async function connectDriver(run: FoundRun, home: string, stack: StackInfo, timeoutMs?: number): Promise<RunDriver> {
  const { connectTemporalClient } = await import('../../infra/temporal/connection.ts');
  return new WorkflowDriver(run, home, stack, await connectTemporalClient(stack, timeoutMs));
}

/** A workflow that has recorded its last state ends within this time. */
const endingMs = 15_000;
/** How often the driver asks whether the workflow has ended. */
const endedMs = 250;
/**
 * A stuck workflow, or one that was lost with the server's database, is started again soon. Only a workflow that stays
 * ended for this many looks counts as ended.
 */
const endedLooks = 8;

class WorkflowDriver implements RunDriver {
  readonly stack: StackInfo;
  readonly #run: FoundRun;
  readonly #home: string;
  readonly #client: Client;
  #closed = false;

  constructor(run: FoundRun, home: string, stack: StackInfo, client: Client) {
    this.stack = stack;
    this.#run = run;
    this.#home = home;
    this.#client = client;
  }

  async workflow(): Promise<WorkflowState> {
    return (await runningWorkflow(this.#client, this.#run.runId)) === undefined ? 'ended' : 'running';
  }

  async signal(desired: DesiredState): Promise<boolean> {
    const { isGrpcServiceError } = await import('@temporalio/client');
    try {
      return await this.#client.withDeadline(Date.now() + answerMs, () =>
        tellRunWorkflow(this.#client, this.#run.runId, desired),
      );
    } catch (error) {
      if (!isGrpcServiceError(error instanceof Error ? error.cause : error)) throw error;
      throw new RetryableError('TemporalUnreachable', `Temporal did not answer: ${errorToJson(error).message}`, {
        hint: 'petrel up',
        cause: error,
      });
    }
  }

  async noteToStart(): Promise<void> {
    await drivenRuns(this.#home).noteToStart(this.#asDriven());
  }

  #asDriven(): DrivenRun {
    const { runId, log, record } = this.#run;
    return { runId, store: log.store.url, kind: record.kind };
  }

  async start(ending: boolean): Promise<void> {
    if (ending) await poll(async () => (await this.workflow()) === 'ended', { everyMs: 50, timeoutMs: endingMs });
    const { startWorkflow } = await import('./start.ts');
    const { kind, ...carry } = this.#asDriven();
    await startWorkflow(this.#client, this.#home, carry, kind);
  }

  async end(why: string): Promise<void> {
    const running = await runningWorkflow(this.#client, this.#run.runId);
    if (running !== undefined) await endRunWorkflow(this.#client, this.#run.runId, running.execution, why);
  }

  /** Short queries instead of one long wait, because a connection cannot close cleanly while a call is in flight. */
  async ended(): Promise<void> {
    await untilEnded(
      () => this.workflow(),
      () => this.#closed,
      endedMs,
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client.connection.close();
  }
}

/** Resolves when the workflow stays ended, or on the signal. */
export async function untilEnded(
  workflow: () => Promise<WorkflowState>,
  givenUp: () => boolean,
  everyMs: number,
): Promise<void> {
  for (let looks = 0; looks < endedLooks && !givenUp(); ) {
    try {
      looks = (await workflow()) === 'ended' ? looks + 1 : 0;
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      // The server cannot be reached or is being replaced. The run waits for it too.
      looks = 0;
    }
    await delay(everyMs);
  }
}
