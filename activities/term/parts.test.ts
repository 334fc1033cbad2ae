import { expect, it } from 'vitest';
import type { Components } from '../../core/records/components.ts';
import { forEachPart, stateOfPart } from './parts.ts';

const digest = (letter: string) => letter.repeat(64);
const runStateOf = (components: Components<{ readonly stateDigest: string }>): string =>
  Object.entries(components)
    .map(([name, { stateDigest }]) => `${name} ${stateDigest}`)
    .join(', ');
const parts = [
  { components: ['actor'], part: true },
  { components: ['critic'], part: true },
] as const;

it('a part has the state of its components, and the whole run that of its record', () => {
  const components = Object.fromEntries(
    ['actor', 'critic', 'logZ'].map((name) => [
      name,
      { stateDigest: digest(name.charAt(0)), weightsDigest: digest('0') },
    ]),
  );
  const at = { stateDigest: digest('f'), components };
  expect(stateOfPart({ runStateOf }, at, {})).toBe(digest('f'));
  expect(stateOfPart({ runStateOf }, at, { components: ['actor', 'critic', 'logZ'] })).toBe(digest('f'));
  expect(stateOfPart({ runStateOf }, at, parts[1])).toBe(`critic ${digest('c')}`);
  const two = stateOfPart({ runStateOf }, at, { components: ['actor', 'logZ'], part: true });
  expect(two).toBe(runStateOf({ actor: { stateDigest: digest('a') }, logZ: { stateDigest: digest('l') } }));
});

it('the parts work at the same time, and their results are in order', async () => {
  let release = () => {};
  const second = new Promise<void>((resolve) => (release = resolve));
  const done = await forEachPart(parts, new AbortController().signal, async ({ components }) => {
    if (components?.[0] === 'actor') await second;
    else release();
    return components;
  });
  expect(done).toEqual([['actor'], ['critic']]);
});

it('a part that fails ends the wait of the others, and its error is that of all', async () => {
  const waiting = forEachPart(parts, new AbortController().signal, async ({ components }, signal) => {
    if (components?.[0] === 'critic') throw new RangeError('the critic is gone');
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  });
  await expect(waiting).rejects.toThrow('the critic is gone');
});
