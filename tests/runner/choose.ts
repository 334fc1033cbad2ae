/**
 * Which files are long: those that say so in their head (`@module-tag long`, as described in vitest.config.ts), and the
 * files that are repeated on emulated tiles.
 */
import { readFileSync } from 'node:fs';
import type { TestSpecification } from 'vitest/node';
import type { Choice } from './options.ts';

export function chosen(files: readonly TestSpecification[], choice: Choice): TestSpecification[] {
  return files.filter((file) => choice === 'all' || isLong(file) === (choice === 'long'));
}

function isLong({ project, moduleId }: TestSpecification): boolean {
  return project.name === 'tiles' || saysLong(readFileSync(moduleId, 'utf8'));
}

/** Vitest reads the same words, for `--tags-filter`. */
export function saysLong(source: string): boolean {
  return /^\/\/ @module-tag long$/m.test(source);
}
