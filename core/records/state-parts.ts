/** The parts of a state that has all weights and the moments of AdamW: those of every checkpoint before format 3. */
import type { StatePart } from '../parameters.ts';

export const stateParts = ['weights', 'm', 'v'] as const;

/** Each is as long as all parameters together. */
export const partsOf = (elements: number, trainable = true): readonly StatePart[] =>
  (trainable ? stateParts : ['weights']).map((name) => ({ name, dtype: 'F32', elements }));
