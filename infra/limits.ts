/** The limits of this shell that are too small for a stack: setup/limits.mjs, which set-up asks too. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { InvalidInputError } from '../core/errors.ts';
import { packageRoot } from './home.ts';

/** One limit, and what to type. */
export interface SmallLimit {
  readonly name: string;
  readonly detail: string;
  readonly fix: string;
}

/** Empty when a stack has what it needs. */
export async function smallLimits(): Promise<readonly SmallLimit[]> {
  const file = join(packageRoot(), 'setup/limits.mjs');
  const module = (await import(pathToFileURL(file).href)) as { smallLimits(): SmallLimit[] };
  return module.smallLimits();
}

/** Throws InvalidInputError that names all of them. */
export async function requireLimits(): Promise<void> {
  const small = await smallLimits();
  if (small.length === 0) return;
  throw new InvalidInputError(small.map(({ detail }) => detail).join('; '), {
    hint: small.map(({ fix }) => fix).join('; '),
  });
}
