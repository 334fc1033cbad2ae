/** The table of metrics has every name that real runs report, and no other. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inTable, listedMetrics, metricNames, metricRows } from '../../api/runs/metric-rows.ts';
import { METRICS, metricInfo } from '../../core/metrics.ts';
import { LoopUnderTest } from '../loop-under-test.ts';

describe('metrics', () => {
  const loop = new LoopUnderTest();
  let reported: string[];
  beforeAll(async () => {
    await loop.up();
    const rl = await loop.completed({
      data: { val_files: loop.validationFile },
      actor: { use_kl_loss: true, entropy_coeff: 0.01, ppo_epochs: 2 },
      trainer: { total_training_steps: 2, test_freq: 1 },
    });
    const sft = await loop.completed({ kind: 'sft', trainer: { total_training_steps: 2 } });
    const rows = [...(await metricRows(rl.log)), ...(await metricRows(sft.log))];
    reported = metricNames(rows).map(inTable);
  });
  afterAll(() => loop.remove());

  it('are all in the table', () => {
    expect(reported.length).toBeGreaterThan(30);
    expect(reported.filter((name) => metricInfo(name) === undefined)).toEqual([]);
    expect(listedMetrics(reported).every(({ doc }) => doc !== '')).toBe(true);
  });

  it('are all that the table has', () => {
    const used = new Set(reported.map((name) => metricInfo(name)?.name));
    expect(METRICS.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
  });
});
