import { machineNeeds } from '../machine-needs.ts';
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
  needs: key(
    z.partialRecord(z.enum(roles), machineNeeds),
    {},
    {
      doc: 'What the machines of a role must have, by role: {trainer: {pools: [gpus], gpu: {count: 8, memory_gib: 80, model: H100}}}. within_ms: 10 asks for a round trip to this machine of at most that. Machines without it get no job of that role.',
      change: 'free',
    },
  ),
  budget_usd: key(z.number().positive().nullable(), null, {
    doc: 'What the instances of a fleet may cost the run, in dollars. When it is spent but for two iterations, the run pauses at a committed iteration; null: no limit.',
    change: 'free',
  }),
  deadline: key(z.iso.datetime({ offset: true }).nullable(), null, {
    doc: 'When the run should have ended, such as 2027-01-31T18:00:00Z: the fleet then buys what that needs, within its bounds.',
    change: 'free',
  }),
  priority: key(z.number().positive().max(1_000), 1, {
    doc: "The run's part of a fleet's workers against other runs: twice as much gets twice as many.",
    change: 'free',
  }),
});
