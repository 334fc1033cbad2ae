/** What a run's workflow knows and wishes; no Temporal in it, so that it is tested alone. */
import type { RunState, Wish } from '../core/records/schema.ts';
import type { LiveState } from '../core/wire/workflow.ts';

/** Where an iteration boundary leads. */
export type Turn = 'go' | 'hold' | 'stop' | 'cancel' | 'complete';

export class RunProgress {
  wish: Wish = 'run';
  state: RunState = 'queued';
  stage = 'starting';
  /** Is there a term, so that there is a state to save? */
  opened = false;
  position = 0;
  iterations = 0;
  /** Updates of this execution of the workflow. */
  driven = 0;

  /** What to do at a boundary. A wish to stop or cancel beats being done: it was asked for first. */
  turn(): Turn {
    if (this.ending !== undefined) return this.ending;
    if (this.position >= this.iterations) return 'complete';
    return this.wish === 'pause' ? 'hold' : 'go';
  }

  /** The wish to end, if there is one. */
  get ending(): 'stop' | 'cancel' | undefined {
    return this.wish === 'stop' || this.wish === 'cancel' ? this.wish : undefined;
  }

  live(): LiveState {
    const { state, wish, stage, position, iterations } = this;
    return { state, wish, stage, position, iterations };
  }
}
