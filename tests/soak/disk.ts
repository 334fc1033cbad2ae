/** The files under PETREL_HOME after a soak, by their purpose, and leftover files. */
import { lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

export const diskGroups = [
  'records',
  'blobs',
  'run logs',
  'models and rows',
  'Temporal',
  'NATS',
  'process logs',
  'temporary',
  'other',
] as const;
export type DiskGroup = (typeof diskGroups)[number];

export interface DiskUse {
  readonly bytes: Readonly<Record<DiskGroup, number>>;
  readonly files: Readonly<Record<DiskGroup, number>>;
  /** Incomplete files whose writer died. */
  readonly temporary: readonly string[];
}

export function diskUse(home: string): DiskUse {
  const bytes = Object.fromEntries(diskGroups.map((group) => [group, 0])) as Record<DiskGroup, number>;
  const files = { ...bytes };
  const temporary: string[] = [];
  for (const path of walk(home)) {
    const name = relative(home, path);
    const group = groupOf(name);
    const size = sizeOf(path);
    if (group === undefined || size === undefined) continue;
    bytes[group] += size;
    files[group]++;
    if (group === 'temporary') temporary.push(name);
  }
  return { bytes, files, temporary };
}

/** Undefined: a file of the soak itself. */
function groupOf(name: string): DiskGroup | undefined {
  if (/^(faults|inputs|toolchain)(\/|$)/.test(name)) return undefined;
  if (/(^|\/)\.tmp-|\.tmp$|\.partial$|^tmp\//.test(name)) return 'temporary';
  if (/^stack\/temporal\.db/.test(name)) return 'Temporal';
  if (name.startsWith('stack/nats')) return 'NATS';
  if (name.startsWith('stack/logs/')) return 'process logs';
  if (/^(store\/)?runs\/[^/]+\/blobs\//.test(name)) return 'blobs';
  if (/^(store\/)?runs\/[^/]+\/logs\//.test(name)) return 'run logs';
  if (/^(store\/)?runs\//.test(name)) return 'records';
  if (/^(store\/)?(models|datasets)\//.test(name)) return 'models and rows';
  return 'other';
}

function walk(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    try {
      return walk(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  });
}

function sizeOf(path: string): number | undefined {
  try {
    return lstatSync(path).size;
  } catch (error) {
    // The file was removed after it was listed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
