/** Scoring in processes of their own. */
export { createScorerHost } from './scorer-host.ts';
export type { ScoreFailure, ScoreOutcome, ScorerHost, ScorerLimits, ScorerSpec } from './scorer-host.ts';
