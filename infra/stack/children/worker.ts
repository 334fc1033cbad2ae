/**
 * A worker process of the local fleet: `worker.js --name N --pool P --roles trainer,rollout [--threads T] [--notice
 * ec2]`.
 */
import type { ChildSpec } from '../child-spec.ts';
import type { WorkerPool } from '../state.ts';
import { nodeChild } from './node.ts';

/**
 * SIGTERM is a preemption notice: this is long enough to flush and requeue jobs, and for a trainer to save a small
 * model.
 */
const stopGraceMs = 20_000;
/** The part of it that a worker may plan with, because signals and clocks are not exact. */
export const workerGraceMs = stopGraceMs - 1_000;

const workerName = (pool: WorkerPool, index: number): string => `${pool.name}-${index + 1}`;

export function workerChild(home: string, program: string, pool: WorkerPool, index: number): ChildSpec {
  const name = workerName(pool, index);
  const threads = pool.threads === undefined ? [] : ['--threads', String(pool.threads)];
  const notice = pool.notice === undefined ? [] : ['--notice', pool.notice];
  const args = ['--name', name, '--pool', pool.name, '--roles', pool.roles.join(','), ...threads, ...notice];
  return nodeChild(home, { name, kind: 'worker', program, args, stopGraceMs });
}
