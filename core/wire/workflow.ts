/** Names that both sides of the control plane use: the task queue, signals and failure types of workflows. */
import type { RunState, DesiredState } from '../run-states.ts';

export const taskQueue = 'petrel';

/** Failure type of every pause; the workflow branches on it. */
export const pauseType = 'Pause';

/**
 * Failure type of a stage that was called for another position than the end of the log. The workflow then reads the
 * position again.
 */
export const outOfDateType = 'OutOfDate';

/** Arguments of a run's workflow, which it also carries over continue-as-new. */
export interface RunCarry {
  readonly runId: string;
  /** Store URL. It is in workflow arguments and job messages only, never in records. */
  readonly store: string;
}

/** Arguments of a janitor's workflow: its store. */
export interface JanitorCarry {
  readonly store: string;
}

/** Signal to the fleet's workflow: what people want of the fleet has changed. */
export const fleetChangedSignal = 'fleetChanged';

/** Signal: the run's new desired state. The store has it already; the signal only makes the workflow react sooner. */
export const desiredStateSignal = 'wish';
/** Query: the stage and position of the workflow. */
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

/**
 * Arguments of a schedule's workflow. A Temporal Schedule gives no time; a person or the control process gives the
 * time.
 */
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
