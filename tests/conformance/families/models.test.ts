import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

import type { EngineOptions } from '../../../core/ports/policy.ts';
import { loadGolden } from '../load.ts';
import { runFile } from '../run.ts';
import { nativeModels } from './models.ts';

/** Small models are kept in the repository. Without them the reference folder beside the repository is used. */
const homes = ['../../golden', '../../../../shared/golden'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
const home = homes.find((path) => existsSync(`${path}/models`));

const kinds: readonly EngineOptions[] = [
  { compute: 'fp32', deterministic: true, threads: 2 },
  { compute: 'fp32', deterministic: false, threads: 2 },
];

describe.skipIf(home === undefined)(
  'decoders agree with Hugging Face (skipped where the reference models are not present)',
  async () => {
    const files = home === undefined ? [] : await loadGolden(home, ['models']);
    for (const options of kinds) {
      const evaluator = nativeModels(options);
      for (const file of files.filter(({ file }) => evaluator.handles(file))) {
        test(`${file.label}, ${options.deterministic ? 'deterministic' : 'free order of sums'}`, async () => {
          const { cases } = await runFile(file, [evaluator]);
          const ours = cases.filter(({ name }) => name !== 'greedy');
          expect(ours.length).toBeGreaterThan(3);
          expect(
            ours.filter(({ status }) => status === 'failed').map(({ name, reason }) => `${name}: ${reason}`),
          ).toEqual([]);
        });
      }
    }
  },
);
