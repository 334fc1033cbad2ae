/**
 * Errors for objects of the store that are missing, or whose bytes do not match their name or checksum. A person can
 * restore such an object from a copy, so the run pauses. petrel first recomputes what it can.
 */
import { PauseError, PetrelError } from '../errors.ts';
import type { Digest, RunId } from '../ids.ts';
import { keys } from './keys.ts';

/** `Missing…`: the object does not exist. `Damaged…`: it exists and cannot be used. */
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

/** `key`: key of the object. */
export function damage(code: DamageCode, key: string, what: string, hint = restore, cause?: unknown): PauseError {
  return new PauseError(code, `${key}: ${what}`, { where: key, hint, ...(cause === undefined ? {} : { cause }) });
}

/**
 * Iterations after `position` cannot be reached from the remaining records and checkpoints. `reader`: the run that is
 * blocked by this, if it is not the one whose log has the hole.
 */
export function logHole(runId: RunId, position: number, where: string, what: string, reader = runId): PauseError {
  const hint = `restore the object from a copy of the store, then petrel resume ${reader}; or ${earlierStart(reader, runId, position)}`;
  return new PauseError('LogHole', `${where}: ${what}`, { where, hint });
}

/**
 * The command that continues a run whose log can be followed only up to `position`. A fork's log starts with its
 * origin's log, and the origin must not be changed for the fork.
 */
export function earlierStart(reader: RunId, log: RunId, position: number): string {
  return reader === log
    ? `petrel resume ${log} --from ${position} --accept continues after iteration ${position} and abandons the later iterations`
    : `petrel fork ${log} --from ${position} starts another fork after iteration ${position}`;
}

/** Was an object of the store missing or damaged? */
export function isDamage(error: unknown): error is PetrelError {
  return error instanceof PetrelError && damageCodes.has(error.code);
}

/** Is this blob the missing or damaged one? */
export function isLostBlob(error: unknown, runId: RunId, digest: Digest): boolean {
  return isDamage(error) && error.where === keys.blob(runId, digest);
}
