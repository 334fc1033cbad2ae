/** What an engine's probe found about its bits: part of a worker's presence, shown by `doctor`, `plan` and `status`. */
import { z } from 'zod';

export const engineProof = z.object({
  compute: z.enum(['fp32', 'bf16']),
  /** The numeric profile whose bits were expected. */
  profile: z.string(),
  /**
   * proved: the probe has the recorded bits. refused: it has others. unproved: none are recorded for this kind of
   * processor.
   */
  state: z.enum(['proved', 'refused', 'unproved']),
  /** How long the probe took. */
  ms: z.number().nonnegative(),
});

export type EngineProof = z.infer<typeof engineProof>;

/** Says what is wrong with an engine that gives other bits than its profile names. */
export const refusedText = ({ compute, profile }: Pick<EngineProof, 'compute' | 'profile'>): string =>
  `the engine gives other bits in ${compute} than ${profile} names, so it takes no part in deterministic runs in ${compute}`;

/** Says what to do about it. */
export const refusedHint =
  'build it again without flags of your own: unset PETREL_CXX_FLAGS, then npm run build; another compiler may help too';
