/**
 * Command line of a worker process: `worker.js --name N --roles trainer,rollout,reward [--threads T] [--grace S]
 * [--notice ec2]`.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { InvalidInputError } from '../core/errors.ts';
import { roles as knownRoles } from '../core/roles.ts';
import type { Role } from '../core/roles.ts';
import { noticeSources } from '../infra/fleet/notice.ts';
import type { NoticeSource } from '../infra/fleet/notice.ts';

/** What a worker does, and with how much of the machine. */
export interface WorkerRoles {
  /** How the previous process of this name ended, as the supervisor reports it. */
  readonly predecessorEnded?: string | undefined;
  readonly roles: readonly Role[];
  /** Compute threads of the engine. */
  readonly threads: number;
}

export interface WorkerOptions extends WorkerRoles {
  /** Name of the worker on its machine. */
  readonly name: string;
  readonly pool: string;
  /** How long the sender of SIGTERM waits before it kills, in seconds. */
  readonly graceSeconds?: number;
  /** Source, besides signals, of preemption notices for this machine. */
  readonly notice?: NoticeSource;
}

export function workerOptions(args: readonly string[]): WorkerOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      name: { type: 'string' },
      pool: { type: 'string' },
      roles: { type: 'string' },
      threads: { type: 'string' },
      grace: { type: 'string' },
      notice: { type: 'string' },
    },
  });
  const roles = (values.roles ?? knownRoles.join(',')).split(',').map((role) => {
    const known = knownRoles.find((name) => name === role);
    if (known === undefined)
      throw new InvalidInputError(`--roles: unknown role "${role}"`, { hint: `one of ${knownRoles.join(', ')}` });
    return known;
  });
  const threads = values.threads === undefined ? availableParallelism() : Number(values.threads);
  if (!Number.isInteger(threads) || threads < 1)
    throw new InvalidInputError(`--threads: expected a whole number from 1, got ${values.threads}`);
  const graceSeconds = values.grace === undefined ? undefined : Number(values.grace);
  if (graceSeconds !== undefined && !(graceSeconds >= 1))
    throw new InvalidInputError(`--grace: expected seconds from 1, got ${values.grace}`);
  const notice = noticeSources.find((source) => source === values.notice);
  if (values.notice !== undefined && notice === undefined)
    throw new InvalidInputError(`--notice: unknown source "${values.notice}"`, {
      hint: `one of ${noticeSources.join(', ')}`,
    });
  return {
    name: values.name ?? `worker-${process.pid}`,
    pool: values.pool ?? 'local',
    roles,
    threads,
    ...(graceSeconds !== undefined && { graceSeconds }),
    ...(notice && { notice }),
  };
}
