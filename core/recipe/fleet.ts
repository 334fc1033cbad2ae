import { z } from 'zod';
import { count, key, section } from './key.ts';

export const ROLES = ['trainer', 'rollout', 'reward'] as const;
export type Role = (typeof ROLES)[number];

const pool = z.strictObject({
  /** Roles a worker of the pool holds; roles in one process share the weights in memory. */
  roles: z.array(z.enum(ROLES)).min(1),
  /** Worker processes. */
  workers: count.default(1),
  /** Compute threads per worker; null: the cores of the machine shared out. */
  threads: count.nullable().default(null),
});

/** `fleet`: which workers the run wants. */
export const fleetSection = section('The workers that the run wants.', {
  pools: key(
    z.record(z.string().regex(/^[a-z][a-z0-9-]*$/), pool),
    { local: { roles: [...ROLES], workers: 1, threads: null } },
    {
      doc: 'By name of a pool: {roles: [trainer, rollout, reward], workers: 1, threads: null}.',
      change: 'free',
    },
  ),
});
