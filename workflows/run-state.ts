/** What a run's workflow knows about its run. No Temporal in it, so that it is tested alone. */
import type { RunState, DesiredState } from '../core/run-states.ts';
import type { LiveState } from '../core/wire/workflow.ts';

/** What happens next at a boundary between stages. */
export type Turn = 'go' | 'pause' | 'stop' | 'cancel' | 'complete';

export class RunProgress {
  /** What the owner wants, as far as the workflow knows. */
  desired: DesiredState = 'run';
  state: RunState = 'queued';
  stage = 'starting';
  /** Whether the run has a term, and so a state to save. */
  opened = false;
  position = 0;
  iterations = 0;
  /** Updates in this execution of the workflow. */
  driven = 0;

  /** What to do at a boundary. Stop and cancel come before completion: the owner asked for them first. */
  turn(): Turn {
    if (this.ending !== undefined) return this.ending;
    if (this.position >= this.iterations) return 'complete';
    return this.desired === 'pause' ? 'pause' : 'go';
  }

  /** How the owner wants the run to end, if at all. */
  get ending(): 'stop' | 'cancel' | undefined {
    return this.desired === 'stop' || this.desired === 'cancel' ? this.desired : undefined;
  }

  live(): LiveState {
    const { state, desired, stage, position, iterations } = this;
    return { state, wish: desired, stage, position, iterations };
  }
}
