/** What retention removes, and what keeps it from that. FORMAT.md describes it. */
import { z } from 'zod';
import { runStates } from '../../run-states.ts';
import { isInputFolder, retainedKeys } from '../own-keys.ts';
import { count, format, keyName } from './fields.ts';

/**
 * A pin of a fork that is being created: it reads everything up to a position, so nothing of that may be removed. The
 * pin is valid until the fork has its first term (`runs/<by>/terms/1/term.json`) or is deleted
 * (`runs/<by>/removed.json`).
 */
export const pin = z.object({
  format,
  runId: z.string(),
  /** Run id of the fork, in the same store. */
  by: keyName,
  position: count,
  at: z.string(),
});

export type Pin = z.infer<typeof pin>;

/** The remaining record of a deleted run, besides its run record. */
export const tombstone = z.object({
  format,
  runId: z.string(),
  removedAt: z.string(),
  /** State and iterations at the time of the deletion. */
  state: z.enum(runStates),
  iterations: count,
});

export type Tombstone = z.infer<typeof tombstone>;

/** A position that a process needs for some time: an export, a redo. */
const timedPin = z.object({ id: z.string(), position: count, why: z.string(), until: z.string() });

export type TimedPin = z.infer<typeof timedPin>;

/** The janitor removes these keys unchanged, so their form is checked. */
const blobKey = z.string().regex(retainedKeys.blob, 'expected a blob of this run');

const checkpointKey = z.string().regex(retainedKeys.checkpoint, 'expected a checkpoint of this run');

const retainedKey = z.string().regex(retainedKeys.blobOrManifest, 'expected a blob or a manifest of this run');

/**
 * Which objects of a run may be missing, and which are pinned. A dense sequence, of which the newest entry is valid.
 * Pins and removals are decided at the same key, so neither can miss the other.
 */
const storedRetention = z
  .object({
    format,
    runId: z.string(),
    n: count,
    at: z.string(),
    /**
     * The run never goes back before this position, so objects that only earlier positions need may be removed. It
     * never falls.
     */
    floor: count,
    /** Objects of the positions up to here are marked or removed. */
    cleared: count,
    pins: z.array(timedPin),
    /** Unreachable objects, marked for removal at the time `condemnedAt`. A later pass removes them. */
    condemned: z.array(retainedKey),
    condemnedAt: z.string(),
    /** Objects below the floor that positions above it share. Every pass checks them again. */
    shared: z.array(blobKey),
    /** Checkpoints of which every shard was read and verified. */
    verified: z.array(checkpointKey),
    /** Terms up to `seen` have no records of positions after `cleared`, except those in `live`. */
    terms: z.object({ seen: count, live: z.array(z.int().positive()) }).optional(),
    /** The run had ended with this status entry, and a pass found nothing more to do. */
    settled: count.optional(),
    /** Orphaned blobs, which no record names. They were found when the run had ended with the status entry `status`. */
    strays: z.object({ status: count, keys: z.array(blobKey), since: z.string(), removing: z.boolean() }).optional(),
  })
  .refine(
    ({ runId, condemned, shared, verified, strays }) =>
      [...condemned, ...shared, ...verified, ...(strays?.keys ?? [])].every((key) => key.startsWith(`runs/${runId}/`)),
    'expected keys of this run, found one of another',
  );

/**
 * The entry with the code's names of fields whose stored names are older: `condemned` is `marked`, `strays` are
 * `orphans`.
 */
export const retentionEntry = storedRetention.transform(
  ({ condemned: marked, condemnedAt: markedAt, strays: orphans, ...entry }) => ({
    ...entry,
    marked,
    markedAt,
    ...(orphans === undefined ? {} : { orphans }),
  }),
);

export type RetentionEntry = z.infer<typeof retentionEntry>;

/** The entry with the stored names. */
export function toStoredRetention({
  marked: condemned,
  markedAt: condemnedAt,
  orphans: strays,
  ...entry
}: RetentionEntry): z.input<typeof storedRetention> {
  return { ...entry, condemned, condemnedAt, ...(strays === undefined ? {} : { strays }) };
}

const inputFolders =
  <T>(folderOf: (one: T) => string) =>
  (all: readonly T[]) =>
    all.filter((one) => isInputFolder(folderOf(one)));

/**
 * Models and datasets that no run names. A dense sequence, of which the newest entry is valid. Entries of the first
 * weeks also name folders of the user; these are left out when an entry is read.
 */
export const inputsEntry = z.object({
  format,
  n: count,
  /** Folders, each with the time since when no run names it. */
  unnamed: z.array(z.object({ folder: z.string(), since: z.string() })).transform(inputFolders(({ folder }) => folder)),
  /** Folders that are being removed now. A run that needs one waits, and stores it again. */
  removing: z.array(z.string()).transform(inputFolders((folder) => folder)),
  /** Names of the files that petrel wrote into a folder of `removing`; other files in it stay. */
  files: z.record(z.string(), z.array(z.string())).default({}),
  /**
   * Maps a folder to the recipe revision of a run, or to a schedule, that names it. It is a hint where to look first.
   */
  namedBy: z.record(z.string(), z.string()).default({}),
});

export type InputsEntry = z.infer<typeof inputsEntry>;
