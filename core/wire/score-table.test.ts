import { describe, expect, it } from 'vitest';
import { drawsIn, parseScoreTable } from './score-table.ts';

const table = {
  trajectories: 'a'.repeat(64),
  scores: [1, null],
  reasons: [null, 'threw'],
  columns: { acc: [1, null] },
};

describe('a table of scores', () => {
  it('is read as it was stored', () => {
    expect(parseScoreTable(table, 'blob')).toEqual(table);
  });

  it('has the samples of a draw side by side, as many as it says, or else as the recipe says', () => {
    const scores = [1, 2, 3, 4];
    expect(drawsIn({ scores }, 2)).toEqual([
      [0, 2],
      [2, 4],
    ]);
    expect(drawsIn({ scores, drawOffsets: [0, 3, 3, 4] }, 2)).toEqual([
      [0, 3],
      [3, 3],
      [3, 4],
    ]);
  });

  it.each([
    ['no scores', { ...table, scores: undefined }, 'no table of scores'],
    ['a score in words', { ...table, scores: [1, 'good'] }, 'no table of scores'],
    ['a reason too few', { ...table, reasons: [null] }, 'reasons: expected 2 entries, found 1'],
    ['a column with an entry too many', { ...table, columns: { acc: [1, 1, 1] } }, 'acc: expected 2 entries, found 3'],
    ['draws that end elsewhere', { ...table, drawOffsets: [0, 1] }, 'drawOffsets: expected offsets from 0 to 2'],
    ['draws that overlap', { ...table, drawOffsets: [0, 2, 1, 2] }, 'drawOffsets: expected offsets from 0 to 2'],
    ['something else in its place', [1], 'no table of scores'],
  ])('with %s is refused as damaged, with its place', (_, value, message) => {
    expect(() => parseScoreTable(value, 'blob')).toThrow(
      expect.objectContaining({ code: 'DamagedRecord', where: 'blob', message: expect.stringContaining(message) }),
    );
  });
});
