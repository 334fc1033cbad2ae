/**
 * Which tests are long: those of files that say so in their first line (`@module-tag long`), single ones that say so
 * (`tags: ['long']`, firstQuick), and the files that are repeated on emulated tiles. vitest.config.ts says what belongs
 * there.
 */
import { readFileSync } from 'node:fs';
import type { TestCase, TestSpecification } from 'vitest/node';
import type { Choice } from './options.ts';

/** A file's tests: none of them is long, some are, or all. */
export type LongTests = 'none' | 'some' | 'all';

/** The files that have tests of this choice. */
export function chosenFiles(files: readonly TestSpecification[], choice: Choice): TestSpecification[] {
  if (choice === 'all') return [...files];
  const without = choice === 'quick' ? 'all' : 'none';
  return files.filter((file) => longTestsOf(file) !== without);
}

/** What Vitest is told, so that it runs only the tests of this choice in these files. */
export function tagsFilter(choice: Choice): string[] {
  return { quick: ['!long'], long: ['long'], all: [] }[choice];
}

/** False for a test that a file has beside those of the choice: it is not run, and not counted as skipped. */
export function isChosen({ tags, project }: TestCase, choice: Choice): boolean {
  const long = project.name === tiles || tags.includes('long');
  return choice === 'all' || long === (choice === 'long');
}

const tiles = 'tiles';

function longTestsOf({ project, moduleId }: TestSpecification): LongTests {
  return project.name === tiles ? 'all' : longTestsIn(readFileSync(moduleId, 'utf8'));
}

/** Reads the tags in the source of a test file. */
export function longTestsIn(source: string): LongTests {
  if (source.startsWith('// @module-tag long\n')) return 'all';
  return /\btags: \['long'\]|\bfirstQuick\(/.test(source) ? 'some' : 'none';
}
