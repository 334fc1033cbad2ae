import type { Scorer } from './types.ts';

/**
 * No scorer: every response has the score 0. For runs whose reward comes from a reward model alone; rows need no ground
 * truth.
 */
export const none: Scorer = () => 0;
