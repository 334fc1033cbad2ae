/**
 * What is said of an object of the store that is missing, or whose bytes are not what its name or its check promises. A
 * person can restore it from a copy, so the run pauses; what petrel can make again by itself it makes again before that.
 */
import { PauseError, PetrelError } from './errors.ts';
import type { Digest, RunId } from './ids.ts';
import { keys } from './records/keys.ts';

/** `Missing…`: not there. `Damaged…`: there, and not to be used. */
export type DamageCode = 'MissingBlob' | 'DamagedBlob' | 'MissingRecord' | 'DamagedRecord' | 'MissingModel' | 'DamagedModel' | 'DamagedDataset' | 'LogHole';

const damageCodes: ReadonlySet<string> = new Set<DamageCode>([
  'MissingBlob', 'DamagedBlob', 'MissingRecord', 'DamagedRecord', 'MissingModel', 'DamagedModel', 'DamagedDataset', 'LogHole',
]);

const restore = 'Restore it from a copy of the store, then petrel resume; petrel ckpt verify lists everything that is damaged';

/** `key`: of the object. */
export function damage(code: DamageCode, key: string, what: string, hint = restore, cause?: unknown): PauseError {
  return new PauseError(code, `${key}: ${what}`, { where: key, hint, ...(cause === undefined ? {} : { cause }) });
}

/** Iterations after `position` cannot be reached from the records and checkpoints that are left. */
export function logHole(runId: RunId, position: number, where: string, what: string): PauseError {
  const hint =
    `Restore the object from a copy of the store, then petrel resume ${runId}; ` +
    `or petrel resume ${runId} --from ${position} --accept goes on after iteration ${position} and abandons what came later`;
  return new PauseError('LogHole', `${where}: ${what}`, { where, hint });
}

/** Did something of the store turn out to be missing or damaged? */
export function isDamage(error: unknown): error is PetrelError {
  return error instanceof PetrelError && damageCodes.has(error.code);
}

/** Is it this blob that is missing or damaged? */
export function isLostBlob(error: unknown, runId: RunId, digest: Digest): boolean {
  return isDamage(error) && error.where === keys.blob(runId, digest);
}
