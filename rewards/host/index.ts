/** Scoring in separate processes. */
export { createScorerHost } from './scorer-host.ts';
export type { ScoreFailure, ScorerHost, ScorerLimits, ScoreOutcome, ScorerSpec } from './scorer-host.ts';
export type { ScoreColumns, ScorerInput, ScorerSettings } from '../types.ts';
