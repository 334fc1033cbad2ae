/**
 * What a script, a file of overrides or a YAML says: one value for each of verl's keys, with the place where it stands.
 */
import { isTree } from '../../../../core/recipe/merge.ts';
import { parseOverrideValue } from '../../../../core/recipe/override-value.ts';
import { InvalidInputError } from '../../../../core/errors.ts';

/** One of verl's keys with its value. */
export interface Entry {
  /** verl's path: `actor_rollout_ref.actor.optim.lr`. */
  readonly path: string;
  readonly value: unknown;
  /** The file in which it stands, where it is not the imported one. */
  readonly file?: string;
  /** Line in the file; absent for words of the command line. */
  readonly line?: number;
  /** It comes from verl's own configuration, so the value is one of verl's defaults. */
  readonly isDefault?: true;
}

/** Something that was not read, or is worth a look. */
export interface Note {
  /** The file in which it stands, where it is not the imported one. */
  readonly file?: string;
  readonly line?: number;
  readonly text: string;
  /** It can change what is learned, so a report names it first. */
  readonly decides?: true;
}

/** An override as it is typed, with the line where it stands. */
export interface OverrideWord {
  readonly text: string;
  readonly line?: number;
}

/** The limit of entries, which is more than any training has. */
const mostEntries = 5_000;

/** Values by key; later ones win, and stand where the last one stands. */
export class Entries {
  readonly #byPath = new Map<string, Entry>();
  readonly notes: Note[] = [];
  #areDefaults = false;
  #file: string | undefined;

  /** Everything that is set and noted meanwhile stands in this file, which is not the imported one. */
  whileIn(file: string, set: () => void): void {
    const before = this.#file;
    this.#file = file;
    set();
    this.#file = before;
  }

  /** Everything that is set meanwhile is one of verl's defaults. */
  whileDefaults(set: () => void): void {
    const before = this.#areDefaults;
    this.#areDefaults = true;
    set();
    this.#areDefaults = before;
  }

  get all(): readonly Entry[] {
    return [...this.#byPath.values()];
  }

  note(text: string, line?: number): void {
    this.#add({ text, ...(line !== undefined && { line }) });
  }

  /** Notes something that can change what is learned. */
  noteLoss(text: string, line?: number): void {
    this.#add({ text, decides: true, ...(line !== undefined && { line }) });
  }

  #add(note: Note): void {
    if (this.notes.length < 1000) this.notes.push({ ...this.#inFile(), ...note });
  }

  #inFile(): { readonly file?: string } {
    return this.#file === undefined ? {} : { file: this.#file };
  }

  /** Mappings become one entry for each of their values; empty ones stay. */
  set(path: string, value: unknown, line?: number, depth = 0): void {
    if (isTree(value) && Object.keys(value).length > 0 && depth < 30) {
      for (const [name, inner] of Object.entries(value)) this.set(join(path, name), inner, line, depth + 1);
      return;
    }
    if (this.#byPath.size >= mostEntries)
      throw new InvalidInputError(`too many keys: more than ${mostEntries}`, { hint: 'is this a training’s file?' });
    this.#byPath.delete(path);
    const place = { ...this.#inFile(), ...(line !== undefined && { line }) };
    this.#byPath.set(path, { path, value, ...place, ...(this.#areDefaults && { isDefault: true as const }) });
  }

  /** The key, and those below it. */
  remove(path: string): void {
    for (const known of this.#byPath.keys())
      if (known === path || known.startsWith(`${path}.`)) this.#byPath.delete(known);
  }

  /**
   * Hydra's overrides: `a.b=v`, `+a.b=v`, `++a.b=v`, `~a.b`. What is none of them becomes a note: options of Hydra
   * (`--config-name`), groups (`actor@actor_rollout_ref.actor=…`), and words that do not parse.
   */
  override({ text, line }: OverrideWord): void {
    if (text.trim() === '') return;
    if (text.startsWith('-')) return this.note(`${shown(text)} is an option of Hydra and is not read`, line);
    const equals = text.indexOf('=');
    const name = (equals < 0 ? text : text.slice(0, equals)).trim();
    const key = name.replace(/^(?:~|\+{1,2})/, '');
    if (!/^[A-Za-z_][\w-]*(?:[./][\w-]+)*(?:@[\w.-]*)?$/.test(key))
      return this.noteLoss(`${shown(text)} is not an override such as a.b=value`, line);
    if (/[@/]/.test(key))
      return this.note(`${shown(text)} selects a file of verl’s configuration and is not read`, line);
    if (name.startsWith('~')) return this.remove(key);
    if (equals < 0) return this.noteLoss(`${shown(text)} is not an override such as a.b=value`, line);
    try {
      this.set(key, parseOverrideValue(text, equals + 1), line);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      this.noteLoss(`the value of ${shown(text)} is not understood`, line);
    }
  }
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** A word as a note quotes it, without holes. */
const shown = (text: string): string => {
  const known = text.replace(/\0\d+\0/g, '…');
  return known.length > 80 ? `${known.slice(0, 77)}…` : known;
};
