/** What stacks write into a store: the key of claims, names, and the runs that they drive. FORMAT.md describes it. */
import { z } from 'zod';
import { RUN_KINDS } from '../../run-kinds.ts';
import { count, format, writer } from './fields.ts';

/** The key from which the control processes of this store derive the secrets of claims. No worker reads it. */
export const claimKey = z.object({ format, key: z.string().regex(/^[0-9a-f]{64}$/), writer });

export type ClaimKey = z.infer<typeof claimKey>;

/** Which stack has a name in this store. The newest entry counts. */
export const stackClaim = z.object({
  format,
  name: z.string(),
  n: count,
  /** Random, of the stack that has the name. */
  id: z.string(),
  /** The server of Temporal that stack.yaml names; absent: the stack has its own. */
  temporal: z.object({ address: z.string(), namespace: z.string() }).optional(),
  /** Words for people: where and when a command of the stack claimed it. */
  machine: z.string(),
  at: z.string(),
});

export type StackClaim = z.infer<typeof stackClaim>;

/** A note that a stack of several machines drives a run. Removed when the run has ended. */
export const drivenNote = z.object({
  format,
  stack: z.string(),
  runId: z.string(),
  /** Random; in the key. */
  note: z.string(),
  /** URL of the run's store. */
  store: z.string(),
  kind: z.enum(RUN_KINDS),
  /** Instance of the machine that has noted it, and when. */
  machine: z.string(),
  at: z.string(),
  /** The command on that machine that is about to queue the run again and start its workflow. */
  startedBy: z.object({ pid: z.int(), startTime: z.string() }).optional(),
  /**
   * Proof of all other fields, with a secret of the stack: a stranger who may write into the store cannot make the
   * stack drive a run.
   */
  proof: z.string(),
});

export type DrivenNote = z.infer<typeof drivenNote>;
