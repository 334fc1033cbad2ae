import { describe, expect, it } from 'vitest';
import { metricInfo, METRICS, presentNames, reproducibleMetrics } from './metrics.ts';

describe('the table of metrics', () => {
  it('has each name once, with a doc line', () => {
    expect(new Set(METRICS.map(({ name }) => name)).size).toBe(METRICS.length);
    for (const { name, doc } of METRICS) expect(doc, name).toMatch(/^[A-Z0-9].*\.$/);
  });

  it.each([
    ['actor/pg_loss', 'reproducible', ''],
    ['critic/score/mean', 'reproducible', ''],
    ['response_length/mean', 'reproducible', 'tokens'],
    ['response_length/clip_ratio', 'reproducible', ''],
    ['training/rollout_probs_diff_mean', 'reproducible', ''],
    ['timing_s/gen', 'operational', 's'],
    ['timing_s/rollout', 'operational', 's'],
    ['reward_extra/format/mean', 'reproducible', ''],
    ['val-core/openai/gsm8k/acc/mean@4', 'reproducible', ''],
    ['val-core/math/reward/maj@16/std', 'reproducible', ''],
    ['val-aux/math/acc/worst@2/mean', 'reproducible', ''],
    ['val-core/acc/mean@4', 'reproducible', ''],
    ['rollout/decoded_tokens', 'operational', 'tokens'],
  ])('knows %s as %s', (name, kind, unit) => {
    expect(metricInfo(name)).toMatchObject({ kind, unit });
  });

  it('is closed: what it does not have is unknown', () => {
    expect(metricInfo('actor/pgloss')).toBeUndefined();
    expect(metricInfo('timing_s/')).toBeUndefined();
    expect(metricInfo('x/actor/pg_loss')).toBeUndefined();
    expect(metricInfo('val-core/math/length/mean@4')).toBeUndefined();
  });

  it('calls nothing reproducible that is a time, a speed or memory', () => {
    const measured = METRICS.filter(
      ({ name, unit }) => ['s', 'ms', 'tokens/s', 'GiB'].includes(unit) || name.startsWith('perf/'),
    );
    expect(measured.length).toBeGreaterThan(10);
    expect(measured.filter(({ kind }) => kind === 'reproducible')).toEqual([]);
  });

  it('knows what shows the same as a name of an older petrel', () => {
    expect(presentNames('timing_s/rollout', ['timing_s/gen', 'timing_s/adv'])).toEqual(['timing_s/gen']);
    const core = ['val-core/a/b/reward/mean@4', 'val-core/a/b/reward/best@4/mean', 'val-core/acc/mean@1'];
    expect(presentNames('val/accuracy', core)).toEqual(['val-core/a/b/reward/mean@4', 'val-core/acc/mean@1']);
    expect(presentNames('val-core/acc/mean@1', ['val-core/s/acc/mean@1'])).toEqual([]);
    expect(presentNames('timing_s/gen', ['timing_s/gen'])).toEqual([]);
  });

  it('tells what equal runs agree on from what they do not', () => {
    expect(reproducibleMetrics({ 'actor/loss': 1, 'timing_s/rollout': 2, unknown: 3 })).toEqual({ 'actor/loss': 1 });
  });
});
