/** What a run's workflow knows about its run. It does not use Temporal, so it is tested alone. */
import type { RunState, DesiredState } from '../core/run-states.ts';
import type { LiveState } from '../core/wire/workflow.ts';

/** The next step at a boundary between stages. */
export type Turn = 'go' | 'pause' | 'stop' | 'cancel' | 'complete';

export class RunProgress {
  /** The desired state, as far as the workflow knows. */
  desired: DesiredState = 'run';
  state: RunState = 'queued';
  stage = 'starting';
  /** Does the run have a term, and so a state to save? */
  opened = false;
  position = 0;
  iterations = 0;
  /** Updates in this execution of the workflow. */
  driven = 0;

  /** The next step at a boundary. Stop and cancel come before completion, because the user asked for them first. */
  turn(): Turn {
    if (this.ending !== undefined) return this.ending;
    if (this.position >= this.iterations) return 'complete';
    return this.desired === 'pause' ? 'pause' : 'go';
  }

  /** The end that the user wants, if any. */
  get ending(): 'stop' | 'cancel' | undefined {
    return this.desired === 'stop' || this.desired === 'cancel' ? this.desired : undefined;
  }

  live(): LiveState {
    const { state, desired, stage, position, iterations } = this;
    return { state, wish: desired, stage, position, iterations };
  }
}
