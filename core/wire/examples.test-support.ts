/** Parts of messages for tests that need some, whatever they say. */
import type { EngineFacts } from './engine-facts.ts';

export const exampleEngine: EngineFacts = {
  name: 'native',
  device: 'avx2',
  build: 'b',
  computes: ['fp32'],
  auto: { deterministic: 'fp32', otherwise: 'fp32' },
  randomness: 'counter',
  deterministic: { fp32: 'det-1' },
};
