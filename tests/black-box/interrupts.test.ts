/** Ctrl-C ends a command that shows a run, with the exit code that says so; the run continues. */
import { once } from 'node:events';
import { afterAll, expect, it } from 'vitest';
import { finish, PetrelUser } from './petrel.ts';

const user = PetrelUser.onLentStack();
afterAll(() => user.remove());

/** Starts a command, sends Ctrl-C when it has printed something, and returns how it ended. */
async function interrupted(...words: readonly string[]) {
  const child = user.start(words, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ran = finish(child, words.join(' '));
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('the command has no streams');
  await Promise.race([
    once(stdout, 'data'),
    words[0] === 'run' ? untilText(stderr, /iteration \d+\//) : new Promise(() => {}),
  ]);
  child.kill('SIGINT');
  return ran;
}

/** Resolves when a stream has brought the text. */
function untilText(stream: NodeJS.ReadableStream, wanted: RegExp): Promise<void> {
  let text = '';
  return new Promise((resolve) => {
    stream.on('data', (part: Buffer | string) => {
      text += String(part);
      if (wanted.test(text)) resolve();
    });
  });
}

it('Ctrl-C leaves the run going and ends run, status, metrics and logs with 130', async () => {
  user.recipe('recipe.yaml', { trainer: { total_training_steps: 100_000, save_freq: 100 } });
  const run = await interrupted('run', 'recipe.yaml', '--name', 'long');
  expect([run.code, run.err]).toEqual([
    130,
    expect.stringMatching(/^long-\S+ continues\nnext:\n {2}\S.* status long-/m),
  ]);
  for (const words of [
    ['status', 'long', '--watch'],
    ['metrics', 'long', '--follow'],
    ['logs', 'long', '--follow'],
  ]) {
    const shown = await interrupted(...words);
    expect([words[0], shown.code, shown.err]).toEqual([words[0], 130, '']);
  }
  const { state } = (await user.petrel('status', 'long', '--json')).json<{ state: string }>();
  expect(state).toBe('running');
  expect((await user.petrel('cancel', 'long', '--yes')).code).toBe(0);
});
