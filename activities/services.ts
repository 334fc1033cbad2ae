/** Objects that the stages of all runs of a control process share. */
import type { ActivityPorts } from './ports/index.ts';
import type { Recompute } from './term/recompute.ts';
import type { RunContexts } from './term/run-context.ts';
import type { Standbys } from './term/standbys.ts';
import type { KeptScores } from './term/kept-scores.ts';
import type { WeightsPublisher } from './term/weights.ts';

export interface StageServices {
  readonly ports: ActivityPorts;
  readonly contexts: RunContexts;
  readonly recompute: Recompute;
  readonly weights: WeightsPublisher;
  readonly standbys: Standbys;
  readonly kept: KeptScores;
}
