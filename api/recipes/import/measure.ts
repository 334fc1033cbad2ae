/** Counts what becomes of the keys of many files: `petrel recipe import --dry-run`. */
import { PetrelError } from '../../../core/errors.ts';
import { importReasonText } from './keys/map-entries.ts';
import { type ImportedKey, MAPPED, type KeyOutcome, OUTCOMES } from './keys/outcome.ts';
import { importRecipe, type KeyCounts } from './import-recipe.ts';
import type { ImportInputs } from './read-source.ts';

export interface ImportMeasure {
  readonly files: readonly MeasuredFile[];
  /** Counts over all files that could be read. */
  readonly totals: KeyCounts;
  /** Keys that are not mapped, the most frequent first. */
  readonly left: readonly LeftKey[];
}

export type MeasuredFile =
  | { readonly file: string; readonly counts: KeyCounts; readonly problems: number; readonly notes: number }
  | { readonly file: string; readonly error: string };

export interface LeftKey {
  readonly verl: string;
  readonly outcome: KeyOutcome;
  readonly why: string;
  /** Number of files that have the key. */
  readonly files: number;
}

/** A file that cannot be read becomes an entry with its error. */
export function measureImports(paths: readonly string[], inputs: ImportInputs, cwd: string): ImportMeasure {
  const left = new Map<string, LeftKey>();
  const files = paths.map((path): MeasuredFile => {
    try {
      const { source, counts, keys, problems, notes } = importRecipe(path, inputs, cwd);
      for (const key of keys.filter(({ outcome }) => !MAPPED.has(outcome))) count(left, key);
      return { file: source, counts, problems: problems.length, notes: notes.length };
    } catch (error) {
      if (!(error instanceof PetrelError)) throw error;
      return { file: path, error: error.message };
    }
  });
  return {
    files,
    totals: sumOf(files.flatMap((file) => ('counts' in file ? [file.counts] : []))),
    left: [...left.values()].toSorted((a, b) => b.files - a.files || (a.verl < b.verl ? -1 : 1)),
  };
}

/** Counts a key that was left; different reasons in different files are different rows. */
function count(left: Map<string, LeftKey>, key: ImportedKey): void {
  const why = key.outcome === 'unreadable' ? 'its value is not known' : importReasonText(key);
  const id = `${key.verl} ${key.outcome} ${why}`;
  left.set(id, { verl: key.verl, outcome: key.outcome, why, files: (left.get(id)?.files ?? 0) + 1 });
}

function sumOf(counts: readonly KeyCounts[]): KeyCounts {
  const sum = (name: keyof KeyCounts) => counts.reduce((total, one) => total + one[name], 0);
  const outcomes = Object.fromEntries(OUTCOMES.map((name) => [name, sum(name)])) as Record<KeyOutcome, number>;
  return { ...outcomes, keys: sum('keys'), mapped: sum('mapped') };
}
