import type { Store } from '../../core/ports/store.ts';

/** External functions that preparing a run needs. */
export interface PreparePorts {
  readonly store: Store;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly now: Date;
  readonly say: (text: string) => void;
}
