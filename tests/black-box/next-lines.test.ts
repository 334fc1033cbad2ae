/** The commands that petrel prints work when they are pasted, also where petrel is not on the PATH. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { PetrelUser, petrelBin } from './petrel.ts';

const user = PetrelUser.onLentStack();
afterAll(() => user.remove());

/** Pastes a line into a shell, as the user would do. */
async function paste(line: string): Promise<string> {
  const ran = await promisify(execFile)('bash', ['-c', line], { cwd: user.folder, env: user.env() });
  return ran.stdout + ran.stderr;
}

/** Commands after `next:`, on its line or indented below it. */
function nextLines(text: string): string[] {
  const [, line = '', below = ''] = /^next:(.*)\n?((?: {2}.*\n?)*)/m.exec(text) ?? [];
  return [...line.split(';'), ...below.split('\n')].map((one) => one.trim()).filter((one) => one !== '');
}

it('but the reference of recipe keys names petrel as the docs do', async () => {
  const { out } = await user.petrel('recipe', 'reference');
  expect(out).toContain('`petrel fork`');
  expect(out).not.toContain(petrelBin);
});

it('of init, plan, a run, status and fork', async () => {
  const made = await user.petrel('init', 'first');
  const [plan = ''] = nextLines(made.err);
  expect(plan).toBe(`node ${petrelBin} plan first`);
  const [run = ''] = nextLines(await paste(plan));
  expect(run).toBe(`node ${petrelBin} run first`);
  const ran = await paste(`${run} trainer.total_training_steps=2`);
  const after = nextLines(ran);
  expect(after.length).toBeGreaterThan(1);
  for (const line of after) await paste(line);
  const later = nextLines((await user.petrel('status', 'first')).out);
  expect(later.length).toBeGreaterThan(0);
  for (const line of later.filter((one) => !after.includes(one))) await paste(line);

  const forked = await user.petrel('fork', 'first', '--from', '1', '--name', 'second');
  expect(forked.code, forked.err).toBe(0);
  const [watch = ''] = nextLines(forked.out + forked.err);
  expect(watch).toMatch(/status second-\S+ --watch$/);
  expect(await paste(watch)).toContain('completed');
});
