/** Runs `petrel plan` on a recipe in a private home: its seconds, and the most memory that its process held. */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { builtFile, packageRoot } from '../../infra/home.ts';
import { privateHome } from '../run/private-home.ts';
import { watchFolder } from './watch-process.ts';
import type { WatchedProcess } from './watch-process.ts';

export interface PlanTime {
  readonly seconds: number;
  readonly peakBytes: number;
}

/** `words`: arguments of `petrel plan` after the recipe. Throws when the recipe cannot be run. */
export async function timePlan(recipe: string, words: readonly string[]): Promise<PlanTime> {
  const { home, remove } = privateHome();
  const watched = join(home, 'watched');
  mkdirSync(watched);
  try {
    const began = performance.now();
    await promisify(execFile)(process.execPath, [join(packageRoot(), 'cli/bin.mjs'), 'plan', recipe, ...words], {
      env: {
        ...process.env,
        PETREL_HOME: home,
        NODE_OPTIONS: `--import ${builtFile('bench/dataset/watch-process.js')}`,
        [watchFolder]: watched,
      },
    });
    const seconds = (performance.now() - began) / 1000;
    const peaks = readdirSync(watched).map(
      (file) => (JSON.parse(readFileSync(join(watched, file), 'utf8')) as WatchedProcess).peakBytes,
    );
    return { seconds, peakBytes: Math.max(...peaks) };
  } finally {
    await remove();
  }
}
