/** The import graph: finds cycles, and files that nothing reaches. */
import { readFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { importsOf, type SourceFile } from './sources.ts';

/** Edges from each file (or folder) to the files that it imports. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

export function importGraph(files: readonly SourceFile[]): Graph {
  const known = new Set(files.map(({ path }) => path));
  const targetsOf = (file: SourceFile) =>
    importsOf(file)
      .filter(({ specifier }) => specifier.startsWith('.'))
      .map(({ specifier }) => posix.normalize(posix.join(dirname(file.path), specifier)))
      .filter((target) => known.has(target));
  return new Map(files.map((file) => [file.path, new Set(targetsOf(file))]));
}

/** The files that an entry point loads into its thread: imports of types load nothing. */
export function loadedBy(entry: string, files: readonly SourceFile[]): ReadonlySet<string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const loaded = new Set<string>();
  const load = (path: string): void => {
    const file = byPath.get(path);
    if (file === undefined || loaded.has(path)) return;
    loaded.add(path);
    for (const { specifier, typeOnly } of importsOf(file))
      if (!typeOnly && specifier.startsWith('.')) load(posix.normalize(posix.join(dirname(path), specifier)));
  };
  load(entry);
  return loaded;
}

/** The cycles, each as its sorted members: strongly connected components of more than one node (Tarjan 1972). */
export function cyclesOf(graph: Graph): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];

  const visit = (node: string): number => {
    const own = index.size;
    index.set(node, own);
    let lowest = own;
    stack.push(node);
    for (const target of graph.get(node) ?? []) {
      const seen = index.get(target);
      if (seen === undefined) lowest = Math.min(lowest, visit(target));
      else if (stack.includes(target)) lowest = Math.min(lowest, seen);
    }
    low.set(node, lowest);
    if (lowest === own) {
      const members = stack.splice(stack.indexOf(node));
      if (members.length > 1) cycles.push(members.sort());
    }
    return lowest;
  };

  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return cycles.sort();
}

/** Folders that are rooms at the top, beside the rest of their top folder. */
const roomsAtTop = ['workers/engine'];

/** The room at the top that a file is in. */
const topRoomOf = (path: string): string =>
  roomsAtTop.find((room) => path.startsWith(`${room}/`)) ?? (path.split('/')[0] as string);

/**
 * Gives, for each folder, the imports between what lies in it: its folders, which are rooms, and its own files. The top
 * is the folder ''.
 */
export function roomGraphs(graph: Graph): Map<string, Map<string, Set<string>>> {
  const rooms = new Map<string, Map<string, Set<string>>>();
  const add = (folder: string, from: string, to: string): void => {
    const inFolder = rooms.get(folder) ?? new Map<string, Set<string>>();
    inFolder.set(from, (inFolder.get(from) ?? new Set()).add(to));
    rooms.set(folder, inFolder);
  };
  for (const [path, targets] of graph) {
    for (const target of targets) {
      if (topRoomOf(path) !== topRoomOf(target)) add('', topRoomOf(path), topRoomOf(target));
      const [from, to] = [path.split('/'), target.split('/')];
      let shared = 0;
      while (from[shared] === to[shared]) shared++;
      const roomOf = (parts: readonly string[]) => parts[shared] as string;
      if (shared > 0) add(from.slice(0, shared).join('/'), roomOf(from), roomOf(to));
    }
  }
  return rooms;
}

/** Files that tools open by their path: settings, commands of package.json, tests. */
const isEntry = (path: string): boolean => /\.test\.ts$|\.config\.ts$/.test(path);

/**
 * Files that no entry point reaches, by an import or by a file name in a string (`new Worker(new URL('./thread.js',
 * …))`, `builtFile('workers/main.js')`, a script of package.json).
 */
export function unreached(root: string, files: readonly SourceFile[], graph: Graph): string[] {
  const scripts = [
    'package.json',
    'vitest.config.ts',
    'cli/bin.mjs',
    'setup/typescript.mjs',
    'setup/programs-bundle.mjs',
  ].map((path) => readFileSync(join(root, path), 'utf8'));
  const byPath = new Map(files.map((file) => [file.path, file]));
  const byName = new Map<string, string[]>();
  for (const { path } of files) byName.set(basename(path, '.ts'), [...(byName.get(basename(path, '.ts')) ?? []), path]);
  /** Files of the names that stand in a text. */
  const namedIn = (text: string): string[] =>
    [...text.matchAll(/([\w.-]+)\.(?:js|ts)\b/g)].flatMap(([, name = '']) => byName.get(name) ?? []);
  const reached = new Set<string>();
  const reach = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const target of graph.get(path) ?? []) reach(target);
    for (const target of namedIn(byPath.get(path)?.text ?? '')) reach(target);
  };
  for (const { path } of files) if (isEntry(path)) reach(path);
  for (const text of scripts) for (const path of namedIn(text)) reach(path);
  return files.map(({ path }) => path).filter((path) => !reached.has(path));
}
