import { expect, it } from 'vitest';
import { terminalOf } from '../printer/terminal.ts';
import { onScreen } from './keep-showing.ts';

const screen = terminalOf({ isTTY: true, columns: 20, rows: 5 }, {}, (text) =>
  text.replaceAll('petrel ', 'npx petrel '),
);

it('shows a text that is higher than the screen as far as there is room: nothing leaves it at the top', () => {
  expect(onScreen('1\n2\n3\n4', screen)).toBe('1\n2\n3\n4');
  expect(onScreen('1\n2\n3\n4\n5\n6', screen)).toBe('1\n2\n3\n… 3 more lines');
});

it('counts a line that is too long as often as it is broken', () => {
  expect(onScreen(`1\n${'x'.repeat(45)}\n3\n4`, screen)).toBe('1\n… 3 more lines');
  expect(onScreen('petrel status toy-1\n2\n3\n4', screen)).toBe('petrel status toy-1\n2\n… 2 more lines');
});
