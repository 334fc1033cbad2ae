import { describe, expect, it } from 'vitest';
import type { MetricRow } from '../../api/index.ts';
import { displayWidth } from '../printer/width.ts';
import { metricList, metricTable, usualNames } from './metrics-text.ts';

const names = [
  'critic/score/mean',
  'val-core/acc/mean@1',
  'actor/entropy',
  'actor/grad_norm',
  'actor/pg_loss',
  'response_length/mean',
  'timing_s/step',
  'training/failed_samples',
];
const row = (iteration: number, term = 1): MetricRow => ({
  iteration,
  term,
  metrics: Object.fromEntries(names.map((name, i) => [name, i + 0.12345])),
  timings: {},
});
const rows = [row(1), row(2)];
const widest = (text: string) => Math.max(...text.split('\n').map(displayWidth));

describe('the list of metrics', () => {
  const doc = 'Share of groups whose responses all have one score: a group estimator learns nothing from them.';
  const listed = [{ name: 'training/groups_without_signal', unit: '', doc }];

  it('keeps its docs whole in a narrow terminal', () => {
    const text = metricList(listed, 80);
    expect(widest(text)).toBeLessThanOrEqual(80);
    expect(text.replaceAll(/\s+/g, ' ')).toContain(doc);
  });

  it('is a table where there is room', () => {
    expect(metricList(listed, undefined).split('\n')).toHaveLength(2);
  });
});

describe('a table of metrics', () => {
  it('leaves out the least important of the usual ones where a terminal is narrow', () => {
    const text = metricTable(rows, usualNames(names), { width: 80, dropColumns: true });
    expect(widest(text)).toBeLessThanOrEqual(80);
    expect(text).toContain('critic/score/mean');
    expect(text).not.toContain('training/failed_samples');
  });

  it('shows all that were asked for, in further tables where they do not fit', () => {
    const text = metricTable([row(1), row(2, 2)], names, { width: 80, dropColumns: false });
    expect(widest(text)).toBeLessThanOrEqual(80);
    for (const name of names) expect(text).toContain(name);
    expect(text.match(/ITERATION/g)?.length).toBeGreaterThan(1);
  });

  it('is whole in a file', () => {
    const text = metricTable(rows, names, { width: undefined, dropColumns: true });
    expect(text.split('\n')).toHaveLength(3);
    for (const name of names) expect(text).toContain(name);
  });
});
