import { roles } from '../roles.ts';
import { z } from 'zod';
import { count, key, section } from './key.ts';

/** Each worker is a process on one machine with its own copy of the weights, so a larger number is a mistake. */
const mostWorkers = 256;
/** No machine has more cores. */
const mostThreads = 1024;

const pool = z.strictObject({
  /** Roles of the pool's workers. Roles in one process share the weights in memory. */
  roles: z.array(z.enum(roles)).min(1),
  /** Worker processes. */
  workers: count.max(mostWorkers).default(1),
  /** Compute threads per worker; null: an equal share of the machine's cores. */
  threads: count.max(mostThreads).nullable().default(null),
});

/** `fleet`: which workers the run needs. */
export const fleetSection = section('The workers that the run needs.', {
  pools: key(
    z.record(z.string().regex(/^[a-z][a-z0-9-]*$/), pool),
    { local: { roles: [...roles], workers: 1, threads: null } },
    {
      doc: 'Pools of workers by name: {roles: [trainer, rollout, reward], workers: 1, threads: null}. All run on one machine, so at most 256 workers and 1,024 threads.',
      change: 'free',
    },
  ),
});
