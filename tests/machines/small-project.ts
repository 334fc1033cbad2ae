/** A project of a few packages of petrel's own lock, so that npm's work on it takes seconds. */
import { copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Entry {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
interface Lock {
  readonly packages: Readonly<Record<string, Entry & Partial<Record<'devDependencies', Record<string, string>>>>>;
}

/** Writes package.json, the lock and the steps of set-up into `copy`: `yaml` for use, TypeScript for development. */
export function writeSmallProject(root: string, copy: string): void {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
  const own = lock.packages[''] ?? {};
  const project = {
    name: 'petrel',
    version: '0.1.0',
    dependencies: { yaml: own.dependencies?.['yaml'] ?? '' },
    devDependencies: { typescript: own.devDependencies?.['typescript'] ?? '' },
  };
  const needed = ['yaml', 'typescript'].flatMap((name) => [...closure(lock, name)]);
  const packages = { '': project, ...Object.fromEntries(needed.map((path) => [path, lock.packages[path]])) };
  mkdirSync(copy, { recursive: true });
  cpSync(join(root, 'setup'), join(copy, 'setup'), { recursive: true });
  copyFileSync(join(root, '.npmrc'), join(copy, '.npmrc'));
  writeFileSync(join(copy, 'package.json'), JSON.stringify(project, null, 2));
  writeFileSync(join(copy, 'package-lock.json'), JSON.stringify({ ...lock, packages }, null, 2));
}

/** The places in the lock of a package and of all that it needs. */
function closure(lock: Lock, name: string, found = new Set<string>()): Set<string> {
  const path = `node_modules/${name}`;
  const entry = lock.packages[path];
  if (entry === undefined || found.has(path)) return found;
  found.add(path);
  for (const next of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) closure(lock, next, found);
  return found;
}
