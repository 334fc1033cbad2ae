/**
 * What is said of an object of the store that is missing, or whose bytes are not what its name or its check promises. A
 * person can restore it from a copy, so the run pauses; what petrel can make again by itself it makes again before that.
 */
import { PauseError, PetrelError } from './errors.ts';
import type { Digest, RunId } from './ids.ts';
import { keys } from './records/keys.ts';

/** `Missing…`: not there. `Damaged…`: there, and not to be used. */
export type DamageCode =
  | 'MissingBlob'
  | 'DamagedBlob'
  | 'MissingRecord'
  | 'DamagedRecord'
  | 'MissingModel'
  | 'DamagedModel'
  | 'DamagedDataset'
  | 'LogHole';

const damageCodes: ReadonlySet<string> = new Set<DamageCode>([
  'MissingBlob',
  'DamagedBlob',
  'MissingRecord',
  'DamagedRecord',
  'MissingModel',
  'DamagedModel',
  'DamagedDataset',
  'LogHole',
]);

const restore =
  'Restore it from a copy of the store, then petrel resume; petrel ckpt verify lists everything that is damaged';

/** `key`: of the object. */
export function damage(code: DamageCode, key: string, what: string, hint = restore, cause?: unknown): PauseError {
  return new PauseError(code, `${key}: ${what}`, { where: key, hint, ...(cause === undefined ? {} : { cause }) });
}

/**
 * Iterations after `position` cannot be reached from the records and checkpoints that are left. `reader`: the run that
 * stands still for it, when it is not the one whose log has the hole.
 */
export function logHole(runId: RunId, position: number, where: string, what: string, reader = runId): PauseError {
  const hint = `Restore the object from a copy of the store, then petrel resume ${reader}; or ${earlierStart(reader, runId, position)}`;
  return new PauseError('LogHole', `${where}: ${what}`, { where, hint });
}

/**
 * The way out for a run when a log leads no further than `position`. A fork begins with the log of its origin, and nothing
 * of that one is given up for its sake.
 */
export function earlierStart(reader: RunId, log: RunId, position: number): string {
  return reader === log
    ? `petrel resume ${log} --from ${position} --accept goes on after iteration ${position} and abandons what came later`
    : `petrel fork ${log} --from ${position} begins another fork, after iteration ${position}`;
}

/** Did something of the store turn out to be missing or damaged? */
export function isDamage(error: unknown): error is PetrelError {
  return error instanceof PetrelError && damageCodes.has(error.code);
}

/** Is it this blob that is missing or damaged? */
export function isLostBlob(error: unknown, runId: RunId, digest: Digest): boolean {
  return isDamage(error) && error.where === keys.blob(runId, digest);
}
