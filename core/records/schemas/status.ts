/** The status log of a run. FORMAT.md describes it. */
import { z } from 'zod';
import { desiredStates, runStates } from '../../run-states.ts';
import { count, format } from './fields.ts';

/** The run's state and its desired state. The newest entry is valid. */
export const statusEntry = z.object({
  format,
  runId: z.string(),
  n: count,
  at: z.string(),
  /** The desired state: what the user asked for last. */
  wish: z.enum(desiredStates),
  state: z.enum(runStates),
  /** Why the run is paused or failed: error JSON. */
  reason: z
    .object({ code: z.string(), message: z.string(), hint: z.string().optional(), where: z.string().optional() })
    .optional(),
});

export type StatusEntry = z.infer<typeof statusEntry>;
