/**
 * The name of a stack in records, so that users know which one drives a run, and its id, by which two stacks of one
 * name are told apart (names.ts). They belong to a PETREL_HOME, or to all homes with one `stack.yaml` that has a name.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { derivedKey } from './derived-key.ts';
import { sharedStack } from './state.ts';

export interface StackIdentity {
  readonly name: string;
  /** Hexadecimal, random. */
  readonly id: string;
}

/** The same for all processes of the stack, and after restarts. */
export function stackIdentity(home: string): StackIdentity {
  const shared = sharedStack(home);
  if (shared !== undefined) return { name: shared.name, id: derivedKey(shared.key, 'stack id', 16).toString('hex') };
  return { name: ownName(home), id: kept(home, 'stack-id', () => randomBytes(16).toString('hex')) };
}

/** `laptop-3f9a2c`: this machine's name and a short random part, or the name in stack.yaml. */
export const stackName = (home: string): string => sharedStack(home)?.name ?? ownName(home);

/**
 * This machine's instance as one word of a subject, see core/wire/worker-identity.ts. Each machine of a stack has its
 * own.
 */
export const instanceName = (home: string): string => instanceOf(ownName(home));

/** The instance of the machine whose own stack has this name. */
const instanceOf = (stack: string): string => stack.replaceAll(/[^A-Za-z0-9_-]/g, '-');

const ownName = (home: string): string =>
  kept(home, 'stack-name', () => `${hostname()}-${randomBytes(3).toString('hex')}`);

/** The content of a file of the home, which is made at the first call. */
function kept(home: string, name: string, make: () => string): string {
  const file = join(home, name);
  return read(file) ?? makeFile(home, file, make());
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The first process that links the file decides its content. A power cut must not lose it, because otherwise the terms
 * of the stack's runs would belong to another stack.
 */
function makeFile(home: string, file: string, content: string): string {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}`;
  writeFileSync(temporary, `${content}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(temporary);
  }
  syncFolder(home);
  return read(file) ?? content;
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
