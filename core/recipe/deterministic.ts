import { z } from 'zod';
import { key } from './key.ts';

/** `deterministic`: which promise the run makes; see `promises.ts`. */
export const deterministicKey = key(z.union([z.boolean(), z.literal('replay')]), false, {
  doc: 'true: killed or undisturbed, the same final weights to the bit (engine and scorers must be deterministic); replay: without that demand on scorers.',
  change: 'fixed',
});
