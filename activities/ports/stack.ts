/** The stack that a control process belongs to. */
import type { Store } from '../../core/ports/store.ts';
import type { EventCounts } from '../../infra/fleet/event-counts.ts';

export interface StackPorts {
  /** Name of this control process, for records. */
  readonly process: string;
  /** Name of the stack, for records: who drives a run. */
  readonly stack: string;
  readonly openStore: (url: string) => Promise<Store>;
  /** True for a run that is registered in this stack's home. A message may name any run. */
  readonly drivesRun: (run: { readonly runId: string; readonly store: string }) => Promise<boolean>;
  /** Throws PauseError `DiskFull` when there is too little room for new work. */
  readonly admitWork: (store: Store) => Promise<void>;
  /** What became of workers since the last commit of a run. */
  readonly events: Pick<EventCounts, 'begin' | 'count' | 'end'>;
}
