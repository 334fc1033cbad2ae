/** Jobs of workers. */
import type { Stage, StageTypes } from '../../core/wire/jobs/index.ts';
import type { Presence } from '../../core/wire/messages.ts';
import type { Dispatcher } from '../../infra/nats/jobs/dispatcher.ts';

export interface DispatchPorts {
  /** All but what the control process itself calls, as workers come and go. */
  readonly dispatcher: Omit<Dispatcher, 'lost' | 'workers'>;
  readonly jobIdOf: <S extends Stage>(stage: S, input: StageTypes[S]['input']) => string;
  readonly listWorkers: () => Promise<Presence[]>;
}
