import { expect, it } from 'vitest';
import { recipeKeys } from '../../core/recipe/index.ts';
import { terminalOf } from '../printer/terminal.ts';
import { displayWidth } from '../printer/width.ts';
import { sectionText } from './recipe-explain.ts';

it.each([80, 120])('the keys of a section fit a terminal of %i columns with their whole docs', (columns) => {
  const keys = recipeKeys.filter(({ path }) => path.startsWith('reward.'));
  const text = sectionText(keys, terminalOf({ isTTY: true, columns }, {}));
  expect(text.split('\n').filter((line) => displayWidth(line) > columns)).toEqual([]);
  const flat = text.replaceAll(/\s+/g, ' ');
  expect(keys.length).toBeGreaterThan(5);
  for (const { path, doc } of keys) expect([path, flat.includes(path) && flat.includes(doc)]).toEqual([path, true]);
});
