/** The help and the docs about metrics agree with the table of metrics. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../cli/commands.ts';
import { metricReference } from '../core/metric-reference.ts';
import { METRICS, metricInfo } from '../core/metrics.ts';
import { packageRoot } from '../infra/home.ts';
import { withoutLinks } from './docs/doors.ts';

const isKnown = (name: string): boolean =>
  name.endsWith('*') ? METRICS.some((one) => one.name.startsWith(name.slice(0, -1))) : metricInfo(name) !== undefined;

describe('metrics in the help', () => {
  it('exist', () => {
    const examples = COMMANDS.flatMap(({ examples = [] }) => examples).filter((line) =>
      line.startsWith('petrel metrics '),
    );
    const names = examples.flatMap((line) => line.split(' ').slice(3)).map((word) => word.replaceAll("'", ''));
    const metrics = names.filter((word) => /^[a-z_-]+\/./.test(word));
    expect(metrics.length).toBeGreaterThan(3);
    expect(metrics.filter((name) => !isKnown(name))).toEqual([]);
  });
});

it('docs/look-up/metrics.md is made from the table of metrics', () => {
  const page = readFileSync(join(packageRoot(), 'docs/look-up/metrics.md'), 'utf8');
  expect(withoutLinks(page) === metricReference(), 'run: npm run docs').toBe(true);
});
