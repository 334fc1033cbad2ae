import { z } from 'zod';
import type { Digest } from '../../ids.ts';
import type { Components } from '../../records/components.ts';
import { digest } from '../../records/schema.ts';
import type { Counters, UpdateRecord } from '../../records/schema.ts';
import { ofState, recomputable, trains } from './fields.ts';

/** Applies one batch record to its parent state. */
export const updateInput = z.strictObject({
  ...recomputable,
  ...trains,
  ...ofState,
  parentState: digest,
  batch: digest,
  /** A checkpoint is due: the new state is copied at once and written while the next stages run. */
  save: z.boolean(),
  /** The same update on the run's standby (`trainer.standby`), which keeps a second copy of the state. */
  standby: z.literal(true).exactOptional(),
});
export type UpdateInput = z.infer<typeof updateInput>;

/** A component's new state, and how it came to it. */
export type UpdatedComponent = UpdateRecord['components'][string];

export interface UpdateOutput {
  readonly outcome: 'applied' | 'skipped';
  readonly reason?: string;
  /** Digest of all components of the job. */
  readonly stateDigest: Digest;
  readonly components: Components<UpdatedComponent>;
  readonly after: Counters;
  readonly metrics: Readonly<Record<string, number | 'NaN' | 'Infinity' | '-Infinity'>>;
}
