/** The reference cases of models on every class of processor that this machine can be lowered to. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { builtFile, packageRoot } from '../../infra/home.ts';
import { testedClasses } from '../../native/testing/bits.ts';

describe('models agree with the reference', () => {
  const classes = testedClasses();
  const titles = (can: boolean) =>
    classes.filter(({ env }) => (env !== undefined) === can).map(({ title }) => title.replace(/ \(.*/, ''));
  console.log(`classes of processors: ${titles(true).join(', ')} run; skipped: ${titles(false).join(', ') || 'none'}`);
  for (const { title, env: lowered } of classes) {
    it.skipIf(lowered === undefined)(`on ${title}`, () => {
      // The addon reads its environment once, so each class needs a process.
      const words = [builtFile('tests/conformance/cli.js'), join(packageRoot(), 'tests/golden'), '--only', 'models'];
      const env = { ...process.env, ...lowered };
      const { stdout, stderr } = spawnSync(process.execPath, words, { env, encoding: 'utf8' });
      const failures = stdout
        .split('\n')
        .filter((line) => /^ {2}models\//.test(line) && !line.includes('not implemented'));
      expect(failures, stderr).toEqual([]);
      const passed = Number(/^(\d+) passed/m.exec(stdout)?.[1]);
      expect(passed, stdout + stderr).toBeGreaterThan(40);
    });
  }
});
