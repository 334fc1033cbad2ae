/** Jobs of workers. */
import type { Stage, StageTypes } from '../../core/wire/jobs/index.ts';
import type { Presence } from '../../core/wire/messages.ts';
import type { Dispatcher } from '../../infra/nats/jobs/dispatcher.ts';

export interface DispatchPorts {
  /** `run` and `settle` are of one job; the rest concerns the trainer of a run. */
  readonly dispatcher: Pick<
    Dispatcher,
    | 'run'
    | 'settle'
    | 'releaseLease'
    | 'isWanted'
    | 'untilWanted'
    | 'endTurn'
    | 'servesWeights'
    | 'announceWeights'
    | 'cancelJobs'
    | 'runResumed'
  >;
  readonly jobIdOf: <S extends Stage>(stage: S, input: StageTypes[S]['input']) => string;
  readonly listWorkers: () => Promise<Presence[]>;
}
