/** Names that the control plane's two sides share: the task queue, signals and failure types of workflows. */
import type { RunState, DesiredState } from '../run-states.ts';

export const taskQueue = 'petrel';

/** Failure type of every pause; the workflow branches on it. */
export const pauseType = 'Pause';

/** Failure type of a stage that was asked for at a position where the log no longer is; the workflow looks where it is. */
export const outOfDateType = 'OutOfDate';

/** What starts a workflow, and all that it carries on. `term` 0: whatever the store says is newest. */
export interface RunCarry {
  readonly runId: string;
  /** Store URL; lives in workflow arguments and job messages only, never in records. */
  readonly store: string;
}

/** What starts a janitor: the store that it goes over. */
export interface JanitorCarry {
  readonly store: string;
}

/** Signal: the run's new desired state. It is in the store already; the signal saves the wait until the workflow reads it there. */
export const desiredStateSignal = 'wish';
/** Query: where the workflow is. */
export const liveQueryName = 'live';

export interface LiveState {
  readonly state: RunState;
  readonly wish: DesiredState;
  readonly stage: string;
  readonly position: number;
  readonly iterations: number;
}

export interface RunOutcome {
  readonly state: RunState;
  readonly position: number;
}

/** Workflow of one time of a schedule. */
export const firingWorkflow = 'scheduledRun';

/** What a Temporal Schedule starts its workflow with; what a person or the control process starts has its time with it. */
export interface FiringCarry {
  readonly schedule: string;
  /** Store URL. */
  readonly store: string;
  readonly generation: number;
  /** ISO, full seconds. */
  readonly time?: string;
  readonly triggered?: boolean;
}

export interface FiringOutcome {
  readonly outcome: 'started' | 'skipped' | 'failed' | 'dropped';
  readonly runId?: string;
  readonly why?: string;
}
