import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { GoldenFile } from './types.ts';

/** A reference file, where it lies, and what the report calls it (`advantages/grpo`, `models/qwen2`). */
export interface LoadedFile {
  readonly label: string;
  /** The folder that holds the file: paths inside the file are relative to it. */
  readonly folder: string;
  readonly file: GoldenFile;
}

/**
 * Every reference file of a folder laid out like tests/golden: `<family>/<name>.json` and `<family>/<name>/cases.json`,
 * in the order of their names. JSON files without `cases` (configs, tokenizers) are not reference files. `only` keeps
 * these families; an unknown one is an error, so that a typing mistake never passes for success.
 */
export async function loadGolden(root: string, only?: readonly string[]): Promise<LoadedFile[]> {
  const families = await subfolders(root);
  for (const name of only ?? []) {
    if (!families.includes(name)) {
      throw new Error(`no family "${name}" in ${root}; there are: ${families.join(', ')}`);
    }
  }
  const files: LoadedFile[] = [];
  for (const family of families) {
    if (only === undefined || only.includes(family)) files.push(...(await loadFamily(root, family)));
  }
  if (files.length === 0) throw new Error(`no reference files in ${root}: expected <family>/<name>.json`);
  return files;
}

async function loadFamily(root: string, family: string): Promise<LoadedFile[]> {
  const folder = join(root, family);
  const paths: string[] = [];
  for (const entry of (await readdir(folder)).sort()) {
    const path = join(folder, entry);
    if (entry.endsWith('.json')) paths.push(path);
    else if (await isFile(join(path, 'cases.json'))) paths.push(join(path, 'cases.json'));
  }
  const loaded: LoadedFile[] = [];
  for (const path of paths) {
    const parsed: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (!isGoldenFile(parsed)) continue;
    const label = relative(root, path).replace(/(\/cases)?\.json$/, '');
    const named = { ...parsed, family: parsed.family ?? family, name: parsed.name ?? label.split('/').at(-1) ?? label };
    loaded.push({ label, folder: join(path, '..'), file: named });
  }
  return loaded;
}

async function subfolders(root: string): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort();
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then((info) => info.isFile(), () => false);
}

function isGoldenFile(value: unknown): value is GoldenFile {
  return typeof value === 'object' && value !== null && 'cases' in value && Array.isArray(value.cases);
}
