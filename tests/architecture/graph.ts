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
    'infra/bootstrap/typescript.mjs',
    'infra/bootstrap/programs-bundle.mjs',
  ].map((path) => readFileSync(join(root, path), 'utf8'));
  const isNamedIn = (text: string, path: string) => {
    const name = basename(path, '.ts');
    return text.includes(`${name}.js`) || text.includes(`${name}.ts`);
  };
  const reached = new Set<string>();
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reach = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const target of graph.get(path) ?? []) reach(target);
    const { text = '' } = byPath.get(path) ?? {};
    for (const other of files) if (!reached.has(other.path) && isNamedIn(text, other.path)) reach(other.path);
  };
  for (const { path } of files) {
    if (isEntry(path) || scripts.some((text) => isNamedIn(text, path))) reach(path);
  }
  return files.map(({ path }) => path).filter((path) => !reached.has(path));
}
