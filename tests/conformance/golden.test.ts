import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { loadGolden, type LoadedFile } from './load.ts';
import { evaluators } from './registry.ts';
import { runFile } from './run.ts';

const GOLDEN = fileURLToPath(new URL('../golden', import.meta.url));
/** The templates belong to third parties and are not copied into the repository. */
const TEMPLATES_HOME = fileURLToPath(new URL('../../../shared/golden', import.meta.url));

const files = await loadGolden(GOLDEN);
const handled = files.filter(({ file }) => evaluators.some((e) => e.family === file.family && e.handles(file)));

const templates = existsSync(`${TEMPLATES_HOME}/templates`) ? await loadGolden(TEMPLATES_HOME, ['templates']) : [];

describe('reference data', () => {
  for (const file of handled) {
    test(`${file.label} agrees with the reference`, async ({ skip }) => {
      const lacks = await agrees(file);
      if (lacks.length > 0) console.log(`${file.label}: ${lacks.length} cases skipped, ${lacks[0]}`);
      if (lacks.length === file.file.cases.length) skip(lacks[0]);
    });
  }

  test.skipIf(templates.length === 0)(
    'templates agree with the reference (skipped where the third-party texts are not present)',
    async () => {
      for (const file of templates) await agrees(file);
    },
  );
});

/** Returns what skipped cases need that this machine lacks. */
async function agrees(file: LoadedFile): Promise<string[]> {
  const { cases } = await runFile(file, evaluators);
  const failed = cases.filter((result) => result.status === 'failed');
  expect(failed.map((result) => `${result.name}: ${result.reason}`)).toEqual([]);
  return cases.flatMap((result) => result.lacks ?? []);
}
