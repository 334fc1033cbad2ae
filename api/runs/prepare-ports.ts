import type { Store } from '../../core/ports.ts';

/** What preparing a run needs from outside. */
export interface PreparePorts {
  readonly store: Store;
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly now: Date;
  readonly say: (text: string) => void;
}
