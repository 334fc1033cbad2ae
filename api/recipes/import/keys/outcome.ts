/** What became of each key of an imported configuration. */
import type { RecipeIssue } from '../../../../core/recipe/issues.ts';
import type { Tree } from '../../../../core/recipe/merge.ts';
import type { EngineChoice } from './engine-choice.ts';
import type { Note } from './entries.ts';
import type { Reason } from './reasons.ts';

/**
 * same: petrel's key has the same name, without the wrapper · moved: another name, the same meaning · differs: the
 * meaning differs, as the note says · met: nothing to set, because petrel does what the value asks for · later: the key
 * exists, but no run can use this value yet · none: no counterpart · refused: the key exists, but not with this value ·
 * unreadable: the value is not known · unknown: petrel does not know this key of verl.
 */
export const OUTCOMES = [
  'same',
  'moved',
  'differs',
  'met',
  'later',
  'none',
  'refused',
  'unreadable',
  'unknown',
] as const;
export type KeyOutcome = (typeof OUTCOMES)[number];

/** Outcomes in which the imported run does what the key asks for, or as near as the note says. */
export const MAPPED: ReadonlySet<KeyOutcome> = new Set(['same', 'moved', 'differs', 'met']);

export interface ImportedKey {
  /** verl's key as it stands in the input. */
  readonly verl: string;
  /** The value; absent when it is not known. A secret is `***`. */
  readonly value?: unknown;
  /** The file in which it stands, where it is not the imported one. */
  readonly file?: string;
  readonly line?: number;
  readonly outcome: KeyOutcome;
  /** petrel's key, if it has one. */
  readonly petrel?: string;
  /** The value in the recipe, if it is written there. */
  readonly written?: unknown;
  /** Other keys of petrel that are written with it. */
  readonly also?: Readonly<Record<string, unknown>>;
  readonly note?: string;
  readonly reason?: Reason;
}

/** A key that the input does not set, and for which verl and petrel have different defaults. */
export interface DefaultKey {
  readonly petrel: string;
  readonly verlDefault: unknown;
  readonly petrelDefault: unknown;
  /** verl's default is written into the recipe, because it decides what is learned. */
  readonly isWritten: boolean;
  readonly note: string;
}

/** A setting of the input that changes what is learned, and that a run of the recipe does not have. */
export interface ImportLoss {
  /** verl's key; absent for what is no key, such as a configuration that was not found. */
  readonly verl?: string;
  readonly value?: unknown;
  /** The file in which it stands, where it is not the imported one. */
  readonly file?: string;
  readonly line?: number;
  /** Why the recipe does not have it, and what to do. */
  readonly why: string;
}

export interface ImportResult {
  /** The recipe. */
  readonly tree: Tree;
  readonly engines: EngineChoice;
  readonly keys: readonly ImportedKey[];
  readonly defaults: readonly DefaultKey[];
  readonly notes: readonly Note[];
  /** What changes what is learned and is not in the recipe. A report names it first. */
  readonly losses: readonly ImportLoss[];
  /** What keeps the recipe from being run as it is: required keys, features that are not built, contradictions. */
  readonly problems: readonly RecipeIssue[];
}
