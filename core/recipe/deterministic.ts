import { z } from 'zod';
import { key } from './key.ts';

/** `deterministic`: what the run guarantees; see `promises.ts`. */
export const deterministicKey = key(z.union([z.boolean(), z.literal('replay')]), false, {
  doc: 'true: the final weights are the same to the bit, even if processes are killed (engine and scorers must be deterministic); replay: only the engine is deterministic.',
  change: 'fixed',
});
