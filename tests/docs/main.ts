/** Writes what is made of the docs: pages from the code, and the links below each page. `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandReference } from '../../cli/command-reference.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { metricReference } from '../../core/metric-reference.ts';
import { recipeReference } from '../../core/recipe/index.ts';
import { packageRoot } from '../../infra/home.ts';
import { doorsOf, withLinks } from './doors.ts';

const folder = join(packageRoot(), 'docs');
const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
const made: Readonly<Record<string, string>> = {
  'look-up/commands.md': commandReference(COMMANDS),
  'look-up/metrics.md': metricReference(),
  'look-up/recipe-keys.md': recipeReference(),
};

const doors = doorsOf(read('README.md'));
for (const { path } of doors.flatMap(({ pages }) => pages))
  writeFileSync(join(folder, path), withLinks(made[path] ?? read(path), path, doors));
