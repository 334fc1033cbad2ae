import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { isAlive } from '../../infra/stack/process.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = LoopUnderTest.onLentStack();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

/** A run of two iterations whose scorer is this function body. */
const scoredBy = (name: string, body: string, reward: Tree = {}, more: Tree = {}): Tree => ({
  deterministic: 'replay',
  trainer: { total_training_steps: 2 },
  reward: { custom_reward_function: { path: loop.scorer(name, body) }, ...reward },
  ...more,
});
/** The number of samples that one process of the scorer has seen. */
const counting = 'globalThis.seen = (globalThis.seen ?? 0) + 1;';

async function outcomes(run: StartedRun) {
  const draws = (await loop.iterations(run)).flatMap(({ batch }) => batch.draws);
  const reasons = draws.flatMap(({ samples }) => samples.filter((sample) => typeof sample === 'string'));
  return { draws, reasons };
}

describe('a faulty scorer fails only its own samples', () => {
  it.each([
    ['throws', `if (globalThis.seen === 3) throw new Error('no digits here');`, {}, /no digits here/],
    ['gives no number', `if (globalThis.seen === 3) return NaN;`, {}, /finite number, got NaN/],
    ['hangs', `if (globalThis.seen === 3) for (;;);`, { timeout: 0.4, max_failed_fraction: 1 }, /within 0\.4 s/],
  ])('when it %s (seed 42)', async (name, trouble, reward, reason) => {
    const run = await loop.start(
      scoredBy(name.replaceAll(' ', '-'), `${counting} ${trouble} return globalThis.seen % 5;`, reward),
    );
    await loop.reaches(run, 'completed');
    const { draws, reasons } = await outcomes(run);
    for (const { fate, samples } of draws)
      expect(fate).toBe(samples.filter((sample) => typeof sample === 'string').length <= 2 ? 'trained' : 'filtered');
    expect(reasons.length).toBeGreaterThan(0);
    expect(reasons.every((text) => reason.test(String(text)))).toBe(true);
    const made = await loop.iterations(run);
    expect(made.reduce((sum, { batch }) => sum + Number(batch.metrics['training/failed_samples']), 0)).toBe(
      reasons.length,
    );
  });

  it('when it uses too much memory for one sample, twice (seed 42)', async () => {
    const eats = `if (extraInfo.index === 2) { const all = []; for (;;) all.push(new Array(1e6).fill(1.5)); } return solutionStr.length;`;
    const run = await loop.start(
      scoredBy(
        'eats',
        eats,
        { memory_limit_mb: 100, max_failed_fraction: 1, timeout: 20 },
        { data: { train_max_samples: 4, shuffle: false }, trainer: { total_training_steps: 1 } },
      ),
    );
    await loop.reaches(run, 'completed');
    const { draws, reasons } = await outcomes(run);
    expect(reasons.length).toBeGreaterThan(0);
    // All samples of such a row fail, so its group has no advantage and is filtered.
    const left = draws.filter(({ fate }) => fate === 'filtered');
    expect(left.map(({ reason }) => reason)).toEqual(left.map(() => '0 of 4 samples are valid'));
    expect(left.length * 4).toBe(reasons.length);
    expect(isAlive(loop.process('local-1'))).toBe(true);
  });
});

describe('a scorer that fails too often', () => {
  it('is called again after what it needs was fixed and the run was resumed (seed 42)', async () => {
    const flag = join(loop.home, 'fixed');
    const flaky = `if (solutionStr !== groundTruth && !process.getBuiltinModule('node:fs').existsSync(${JSON.stringify(flag)})) throw new Error('the service is away'); return solutionStr.length;`;
    const run = await loop.start(scoredBy('flaky', flaky));
    expect((await loop.reaches(run, 'paused')).reason).toMatchObject({
      code: 'TooManyFailedSamples',
      where: 'iteration 1',
    });
    await loop.resume(run);
    await loop.until(
      run,
      'a second pause',
      async () => (await loop.statuses(run)).filter((entry) => entry === 'paused, pause').length === 2,
    );
    writeFileSync(flag, '');
    await loop.resume(run);
    await loop.reaches(run, 'completed');
    const { reasons, draws } = await outcomes(run);
    expect(reasons).toEqual([]);
    expect(draws).toHaveLength(8);
  });

  it('pauses the run with the reason and a hint (seed 42)', async () => {
    const run = await loop.start(
      scoredBy('often', `if (solutionStr !== groundTruth) throw new Error('never works'); return 1;`),
    );
    const status = await loop.reaches(run, 'paused');
    expect(status.reason).toMatchObject({
      code: 'TooManyFailedSamples',
      message: expect.stringMatching(
        /^16 of 16 samples of iteration 1 could not be scored; the limit is 0\.1\. First: .*never works/,
      ),
      hint: expect.stringContaining('reward.max_failed_fraction'),
    });
    expect((await run.log.head())?.position).toBe(0);
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
  });

  it('pauses a deterministic run when an accident happens twice for a sample (seed 42)', async () => {
    const hangs = loop.scorer('always-hangs', `if (extraInfo.index % 2 === 0) for (;;); return 1;`);
    const run = await loop.start({
      reward: { timeout: 0.3, custom_reward_function: { path: hangs, deterministic: true } },
    });
    const status = await loop.reaches(run, 'paused');
    expect(status.reason).toMatchObject({ code: 'ScorerAccident', hint: expect.stringContaining('reward.timeout') });
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
  });
});
