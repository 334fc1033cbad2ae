/** The source files of the project, and the imports of each. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface SourceFile {
  /** The path from the root of the repository, with "/". */
  readonly path: string;
  readonly text: string;
  /** The text without comments and the content of strings, for rules about code. */
  readonly code: string;
}

export interface ImportOf {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

/** The TypeScript files below a folder, ordered by path. */
export function sourcesIn(root: string, folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((file) => {
      const text = readFileSync(file, 'utf8');
      return { path: relative(root, file).replaceAll('\\', '/'), text, code: codeOf(text) };
    });
}

/**
 * Removes comments, and the content of strings. The order matters: a quote inside a comment starts no string, and the
 * other way round.
 */
export function codeOf(text: string): string {
  return text.replace(
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`/g,
    (part) => (part.startsWith('/') ? ' ' : part.slice(0, 1).repeat(2)),
  );
}

/** Every import and re-export of a file, including dynamic ones. */
export function importsOf({ text }: SourceFile): ImportOf[] {
  const statements =
    /^(?:import|export)\s+(?:(type)\s+)?((?:\*|\{|[\w$])[^;'"]*?\s+from\s+)?['"]([^'"\n]+)['"]|\bimport\(\s*['"]([^'"\n]+)['"]\s*\)/gm;
  return [...text.matchAll(statements)].map(([, type, names = '', from, dynamic]) => ({
    specifier: from ?? dynamic ?? '',
    typeOnly: type !== undefined || onlyTypes(names),
  }));
}

function onlyTypes(names: string): boolean {
  const inside = /^\{([\s\S]*)\}/.exec(names.trim())?.[1];
  const parts =
    inside
      ?.split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '') ?? [];
  return parts.length > 0 && parts.every((part) => part.startsWith('type '));
}
