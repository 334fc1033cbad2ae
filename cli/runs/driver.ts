/** The control plane of a run: its workflow, by the run's id. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { Wish } from '../../core/records/schema.ts';
import { ensureStack, readStack } from '../../infra/stack/index.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { runningWorkflow, tellRunWorkflow } from '../../infra/temporal/run-workflow.ts';
import { poll } from '../../infra/wait.ts';
import type { Printer } from '../printer/printer.ts';
import type { FoundRun } from './find.ts';

/** `running`: a workflow drives the run. `ended`: none does (any more). */
export type WorkflowState = 'running' | 'ended';

export interface RunDriver {
  readonly stack: StackInfo;
  workflow(): Promise<WorkflowState>;
  /** The store holds the wish already: the signal makes it quick. */
  signal(wish: Wish): Promise<void>;
  /** Starts the workflow, or joins the one that runs. One that is about to end is waited for first. */
  start(ending: boolean): Promise<void>;
  /** Resolves when the workflow ends, however it ends; a server that is away is waited for. */
  ended(): Promise<void>;
  close(): Promise<void>;
}

/** undefined when the stack is down. */
export async function driverIfUp(run: FoundRun, home: string): Promise<RunDriver | undefined> {
  const stack = readStack(home);
  return stack && (await connectDriver(run, home, stack));
}

/** Brings the stack up when it is down. */
export async function driverAfterUp(run: FoundRun, home: string, printer: Printer): Promise<RunDriver> {
  return connectDriver(run, home, await ensureStack({ home, onProgress: printer.notice }));
}

async function connectDriver(run: FoundRun, home: string, stack: StackInfo): Promise<RunDriver> {
  const { connectTemporalClient } = await import('../../infra/temporal/connection.ts');
  return new WorkflowDriver(run, home, stack, await connectTemporalClient(stack));
}

/** A workflow that has recorded its last state ends within this time. */
const endingMs = 15_000;
/** How often a wait asks whether the workflow has ended. */
const endedMs = 250;
/** One that was stuck, or is gone with the server's database, is started again soon: only what stays ended has ended. */
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

  async signal(wish: Wish): Promise<void> {
    await tellRunWorkflow(this.#client, this.#run.runId, wish);
  }

  async start(ending: boolean): Promise<void> {
    if (ending) await poll(async () => (await this.workflow()) === 'ended', { everyMs: 50, timeoutMs: endingMs });
    const { startWorkflow } = await import('./start.ts');
    await startWorkflow(
      this.#client,
      this.#home,
      { runId: this.#run.runId, store: this.#run.log.store.url },
      this.#run.record.kind,
    );
  }

  /** Short questions instead of one long wait: a connection with a call in flight does not close in peace. */
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

/** Resolves when the workflow stays ended, or when nobody wants to know any more. */
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
      // The server is away or being replaced: the run waits for it too.
      looks = 0;
    }
    await delay(everyMs);
  }
}
