/** Parts of messages for tests that need some, whatever they say. */
import type { EngineFacts } from './engine-facts.ts';
import type { Presence } from './messages.ts';

export const exampleEngine: EngineFacts = {
  name: 'native',
  device: 'avx2',
  build: 'b',
  computes: ['fp32'],
  auto: { deterministic: 'fp32', otherwise: 'fp32' },
  randomness: 'counter',
  deterministic: { fp32: 'det-1' },
};

/** A worker that waits for jobs. */
export const examplePresence: Presence = {
  v: 1,
  instance: 'here',
  worker: 'local-1',
  incarnation: 'a',
  pid: 1,
  host: 'h',
  roles: ['trainer', 'rollout', 'reward'],
  state: 'ready',
  engines: [],
  threads: 1,
  profiles: [],
  jobs: [],
  failuresInARow: 0,
  loopDelayMs: 0,
  since: '2026-01-01T00:00:00Z',
};
