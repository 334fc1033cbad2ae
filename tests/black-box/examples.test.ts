/** Small forms of examples, as their pages print them. */
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PetrelUser, root } from './petrel.ts';

const user = PetrelUser.onLentStack();
afterAll(() => user.remove());

it('06-gsm8k: the small form of its page completes on question and answer rows', async () => {
  symlinkSync(join(root, 'examples'), join(user.folder, 'examples'));
  const page = readFileSync(join(root, 'examples/06-gsm8k/README.md'), 'utf8');
  const [, words = ''] = /^petrel (run .*model\.path=.*)$/m.exec(page) ?? [];
  const run = await user.petrel(...words.split(' '), '--json');
  expect(run.code, run.err).toBe(0);
  const samples = await user.petrel('samples', '06-gsm8k', '--json', '--limit', '100');
  const rows = samples.json<readonly { prompt: string; groundTruth: string }[]>();
  expect(new Set(rows.map(({ groundTruth }) => groundTruth)).size).toBeGreaterThan(1);
  expect(samples.out).not.toContain('"1,330"');
  expect(samples.out).toContain('output the final answer after');
});
