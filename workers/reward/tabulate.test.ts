import { describe, expect, it } from 'vitest';
import { mostText, parseScoreTable } from '../../core/wire/score-table.ts';
import type { ScoreOutcome } from '../../rewards/host/scorer-host.ts';
import type { ScoreColumns } from '../../rewards/types.ts';
import { tabulate } from './tabulate.ts';

const ok = (columns: ScoreColumns): ScoreOutcome => ({ ok: true, score: 1, columns });
const one = Int32Array.of(0, 1);
const failed: ScoreOutcome = { ok: false, code: 'threw', reason: 'no reason' };

describe('a table of scores', () => {
  const table = tabulate(
    [ok({ acc: true, pred: '7', length: 5 }), failed, ok({ acc: false, pred: 'x', length: 'n/a' })],
    ['a', 'b', 'a'],
    Int32Array.of(0, 1, 2, 3),
  );

  it('has numbers and texts of the scorer apart, and the data source of each sample', () => {
    expect(table).toEqual({
      scores: [1, null, 1],
      reasons: [null, 'no reason', null],
      columns: { acc: [1, null, 0], length: [5, null, null] },
      texts: { length: [null, null, 'n/a'], pred: ['7', null, 'x'] },
      sources: { names: ['a', 'b'], samples: [0, 1, 0] },
    });
  });

  it('says where the samples of each draw begin, where draws have different numbers of them', () => {
    const outcomes = [ok({}), ok({}), failed];
    const sources = ['a', 'a', 'a'];
    expect(tabulate(outcomes, sources, Int32Array.of(0, 2, 3)).drawOffsets).toEqual([0, 2, 3]);
    expect(tabulate(outcomes, sources, Int32Array.of(0, 3))).not.toHaveProperty('drawOffsets');
  });

  it('can be read again, and is refused where a column is too short', () => {
    const stored = { trajectories: 'a'.repeat(64), ...table };
    expect(parseScoreTable(stored, 'here')).toEqual(stored);
    const short = { ...stored, texts: { pred: ['7'] } };
    expect(() => parseScoreTable(short, 'here')).toThrow('pred: expected 3 entries, found 1');
  });

  it('cuts long texts between characters, and has no texts where the scorer returned none', () => {
    const long = `${'x'.repeat(mostText - 1)}🐦🐦`;
    expect(tabulate([ok({ pred: long })], ['a'], one).texts).toEqual({ pred: [`${'x'.repeat(mostText - 1)}🐦`] });
    expect(tabulate([ok({ acc: 1 })], ['a'], one)).not.toHaveProperty('texts');
  });
});
