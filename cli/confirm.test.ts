import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { saysYes } from './confirm.ts';

it.each([
  ['y', 'y\r', true],
  ['Yes', 'Yes\r', true],
  ['n', 'n\r', false],
  ['Enter alone', '\r', false],
  ['Ctrl-C', '\u0003', false],
])('%s is taken as an answer to a question', async (_name, keys, answer) => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  output.resume();
  const asked = saysYes('Delete it? [y/N] ', { input, output, terminal: true });
  input.write(keys);
  expect(await asked).toBe(answer);
});
