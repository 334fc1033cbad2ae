/** Objects that the stages of all runs of a control process share. */
import type { ActivityPorts } from '../ports.ts';
import type { Recompute } from '../recompute.ts';
import type { RunContexts } from '../run-context.ts';
import type { Standbys } from '../standbys.ts';
import type { WeightsPublisher } from '../sampling/weights.ts';

export interface StageServices {
  readonly ports: ActivityPorts;
  readonly contexts: RunContexts;
  readonly recompute: Recompute;
  readonly weights: WeightsPublisher;
  readonly standbys: Standbys;
}
