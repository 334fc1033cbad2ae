/**
 * Which tests are long: those of files that say so in their first line (`@module-tag long`), single ones that say so
 * (`tags: ['long']`, firstQuick), and the files that are repeated on emulated tiles. Files that need an engine of their
 * own say `@module-tag engines`. vitest.config.ts says what belongs there.
 */
import { readFileSync } from 'node:fs';
import type { TestCase, TestSpecification } from 'vitest/node';
import type { Choice } from './options.ts';

/** The tags of a file's tests. `some`: some are long, the others quick. */
export type FileTests = 'quick' | 'some' | 'long' | 'engines';

/** The files that have tests of this choice. */
export function chosenFiles(files: readonly TestSpecification[], choice: Choice): TestSpecification[] {
  if (choice === 'all') return [...files];
  const wanted: readonly FileTests[] = { quick: ['quick', 'some'], long: ['some', 'long'], engines: ['engines'] }[
    choice
  ] as readonly FileTests[];
  return files.filter((file) => wanted.includes(testsOf(file)));
}

/** What Vitest is told, so that it runs only the tests of this choice in these files. */
export function tagsFilter(choice: Choice): string[] {
  return { quick: ['!long'], long: ['long'], engines: ['engines'], all: [] }[choice];
}

/** False for a test that a file has beside those of the choice: it is not run, and not counted as skipped. */
export function isChosen({ tags, project }: TestCase, choice: Choice): boolean {
  const long = project.name === tiles || tags.includes('long');
  return choice === 'all' || choice === 'engines' || long === (choice === 'long');
}

const tiles = 'tiles';

function testsOf({ project, moduleId }: TestSpecification): FileTests {
  return project.name === tiles ? 'long' : testsIn(readFileSync(moduleId, 'utf8'));
}

/** Reads the tags in the source of a test file. */
export function testsIn(source: string): FileTests {
  if (source.startsWith('// @module-tag engines\n')) return 'engines';
  if (source.startsWith('// @module-tag long\n')) return 'long';
  return /\btags: \['long'\]|\bfirstQuick\(/.test(source) ? 'some' : 'quick';
}
