/** Ids of numeric profiles: runs with equal ids get equal bits for equal inputs. Jobs are addressed to them. */
import type { ComputeType } from '../parameters.ts';
import { offeredProfile } from './former-profiles.ts';

/** Profile of runs whose bits need not repeat. Alone, it is the queue of jobs that need no engine. */
export const anyProfile = 'any';

/**
 * The queue of the jobs of a profile: a word of their NATS subjects. Workers with the engine take the jobs whose bits
 * need not repeat; for the others the id names the engine, too.
 */
export function queueOf({ engine, id }: { readonly engine: string; readonly id: string }): string {
  return id === anyProfile ? `${engine}-${anyProfile}` : offeredProfile(id);
}

/** What a message says of the workers of a queue: ` and the engine native`. Empty where no engine is needed. */
export function queueText(queue: string): string {
  if (queue === anyProfile) return '';
  const suffix = `-${anyProfile}`;
  return queue.endsWith(suffix) ? ` and the engine ${queue.slice(0, -suffix.length)}` : ` and the profile ${queue}`;
}

const bf16Prefix = 'det-bf16-';

/**
 * Profile of the native engine. `isa`: the instruction set, on whose rounding bf16 depends. fp32 has one order of sums
 * on all of them. `addedFlags` names what a person added to the flags of the engine's build.
 */
export function deterministicProfile(
  compute: ComputeType,
  arithmeticVersion: number,
  isa: string,
  addedFlags = '',
): string {
  const id = compute === 'fp32' ? `det-${arithmeticVersion}` : `${bf16Prefix}${arithmeticVersion}-${isa}`;
  return addedFlags === '' ? id : `${id}-flags-${addedFlags}`;
}
