import { describe, expect, it } from 'vitest';
import { promptStatistics, validationMetrics, validationStatistics, type PromptSamples } from './validation-metrics.ts';

function metricsOf(prompts: readonly PromptSamples[]): Record<string, number> {
  const known = new Map();
  return validationMetrics(validationStatistics(prompts.map((prompt) => promptStatistics(prompt, known))));
}

describe('the numbers of a validation', () => {
  it('have one name for one response to a prompt', () => {
    const source = 'openai/gsm8k';
    expect(
      metricsOf([
        { source, values: { reward: [1] } },
        { source, values: { reward: [0] } },
      ]),
    ).toEqual({ 'val-core/openai/gsm8k/reward/mean@1': 0.5 });
  });

  it('take acc as the core number of the sources that have it', () => {
    const names = Object.keys(
      metricsOf([
        { source: 'math', values: { reward: [0.5], acc: [1] } },
        { source: 'chat', values: { reward: [0.5], length: [7] } },
      ]),
    );
    expect(names.sort()).toEqual([
      'val-aux/chat/length/mean@1',
      'val-aux/math/reward/mean@1',
      'val-core/chat/reward/mean@1',
      'val-core/math/acc/mean@1',
    ]);
  });

  it('draw 2, 4 and all of six responses, and put only the largest draw into the core', () => {
    const names = Object.keys(metricsOf([{ source: 's', values: { reward: [0, 1, 0, 1, 1, 0] } }]));
    expect(names.filter((name) => name.includes('best@')).sort()).toEqual([
      'val-aux/s/reward/best@2/mean',
      'val-aux/s/reward/best@2/std',
      'val-aux/s/reward/best@4/mean',
      'val-aux/s/reward/best@4/std',
      'val-core/s/reward/best@6/mean',
      'val-core/s/reward/best@6/std',
    ]);
    expect(names).toContain('val-aux/s/reward/std@6');
    expect(names.some((name) => name.includes('maj@'))).toBe(false);
  });

  it('leave out what a response lacks, and a number that no response of a source has', () => {
    const metrics = metricsOf([
      { source: 's', values: { reward: [1, 0], length: [5, null], other: [null, null] }, votes: ['A', null] },
      { source: 's', values: { reward: [1, 1], length: [null, null], other: [null, null] }, votes: [null, null] },
    ]);
    expect(metrics).toMatchObject({
      'val-core/s/reward/mean@2': 0.75,
      'val-aux/s/length/mean@2': 5,
      'val-aux/s/length/best@2/mean': 5,
      'val-core/s/reward/maj@2/mean': 0.75,
    });
    expect(Object.keys(metrics).some((name) => name.includes('other'))).toBe(false);
  });

  it('are nothing for no prompts, and for a prompt without responses', () => {
    expect(metricsOf([])).toEqual({});
    expect(metricsOf([{ source: 's', values: { reward: [] } }])).toEqual({});
  });

  it('refuse lists of different lengths', () => {
    expect(() => metricsOf([{ source: 's', values: { reward: [1], acc: [1, 0] } }])).toThrow(
      'a prompt of s has lists of 1 and 2 responses',
    );
  });
});
