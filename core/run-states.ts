/** The state of a run (`RunState`), and the state that its user wants (`DesiredState`). */
export const runStates = ['queued', 'running', 'paused', 'stopped', 'completed', 'failed', 'cancelled'] as const;
export type RunState = (typeof runStates)[number];

export const desiredStates = ['run', 'pause', 'stop', 'cancel'] as const;
export type DesiredState = (typeof desiredStates)[number];

/** States that a run does not leave by itself: only its user can resume it. A paused run has not ended. */
export const endedStates: ReadonlySet<RunState> = new Set(['stopped', 'completed', 'failed', 'cancelled']);
