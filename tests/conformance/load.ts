import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { GoldenFile } from './types.ts';

/** A reference file, its folder, and its name in the report (`advantages/grpo`, `models/qwen2`). */
export interface LoadedFile {
  readonly label: string;
  /** The folder that holds the file: paths inside the file are relative to it. */
  readonly folder: string;
  readonly file: GoldenFile;
}

/**
 * Every reference file of a folder with the layout of tests/golden: `<family>/<name>.json` and
 * `<family>/<name>/cases.json`, ordered by name. JSON files without `cases` (configs, tokenizers) are not reference
 * files. `only` selects families, or single files by label (`models/qwen2`). An unknown one is an error, so that a
 * typing mistake does not look like success.
 */
export async function loadGolden(root: string, only?: readonly string[]): Promise<LoadedFile[]> {
  const families = await subfolders(root);
  const wanted =
    only === undefined ? families : families.filter((family) => only.some((name) => name.split('/')[0] === family));
  const loaded: LoadedFile[] = [];
  for (const family of wanted) loaded.push(...(await loadFamily(root, family)));
  for (const name of only ?? []) {
    if (!loaded.some((file) => isNamed(file, name))) {
      throw new Error(`no reference file for "${name}" in ${root}; families: ${families.join(', ')}`);
    }
  }
  if (loaded.length === 0) throw new Error(`no reference files in ${root}: expected <family>/<name>.json`);
  return loaded.filter((file) => only === undefined || only.some((name) => isNamed(file, name)));
}

function isNamed({ label }: LoadedFile, name: string): boolean {
  return label === name || label.startsWith(`${name}/`);
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
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isFile(),
    () => false,
  );
}

function isGoldenFile(value: unknown): value is GoldenFile {
  return typeof value === 'object' && value !== null && 'cases' in value && Array.isArray(value.cases);
}
