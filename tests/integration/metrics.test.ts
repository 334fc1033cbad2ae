/** The table of metrics contains every name that real runs report, and no other. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportPolicy } from '../../api/checkpoints/export.ts';
import { inTable, listMetrics, metricNames, metricRows } from '../../api/runs/metric-rows.ts';
import { METRICS, metricInfo } from '../../core/metrics.ts';
import { packageRoot } from '../../infra/home.ts';
import { measureOf } from '../../core/validation-measure.ts';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

describe('metrics', () => {
  const loop = new LoopUnderTest();
  let reported: string[];
  let runs: StartedRun[];
  beforeAll(async () => {
    await loop.up();
    const scorer = loop.scorer(
      'judged',
      'return { score: solutionStr.length % 3, acc: solutionStr.includes("7"), length: 5, pred: solutionStr.at(0) };',
    );
    const trainedModel = await loop.completed({ kind: 'rm', trainer: { total_training_steps: 2 } });
    runs = [
      await loop.completed({
        data: { val_files: loop.validationFile },
        actor: { use_kl_loss: true, entropy_coeff: 0.01, ppo_epochs: 2 },
        algorithm: {
          adv_estimator: 'gae',
          filter_groups: { enable: true },
          use_kl_in_reward: true,
          rollout_correction: { rollout_is: 'token', rollout_rs: 'token_k3', rollout_rs_threshold: 1 },
        },
        trainer: { total_training_steps: 2, test_freq: 1 },
      }),
      await loop.completed({
        data: { val_files: loop.validationFile },
        reward: {
          custom_reward_function: { path: scorer },
          reward_manager: { name: 'dapo' },
          overlong_buffer: { enable: true, len: 4 },
        },
        actor: { policy_loss: { loss_mode: 'sppo' }, positive_nll_coef: 0.1 },
        rollout: { val_kwargs: { n: 4, do_sample: true, temperature: 1 } },
        trainer: { total_training_steps: 2 },
      }),
      await loop.completed({
        algorithm: { adv_estimator: 'gae', use_pf_ppo: true },
        critic: { own_trainer: true },
        actor: { ppo_mini_batch_size: 2 },
        trainer: { total_training_steps: 1 },
      }),
      await loop.completed({ algorithm: { adv_estimator: 'remax' }, trainer: { total_training_steps: 1 } }),
      await loop.completed({ algorithm: { adv_estimator: 'spo' }, trainer: { total_training_steps: 1 } }),
      await loop.completed({
        algorithm: { adv_estimator: 'optimal_token_baseline' },
        trainer: { total_training_steps: 1 },
      }),
      await loop.completed({
        reward: { custom_reward_function: { path: scorer } },
        algorithm: { adv_estimator: 'gdpo', gdpo_reward_keys: ['acc', 'score'] },
        trainer: { total_training_steps: 1 },
      }),
      await loop.completed({
        actor: { policy_loss: { loss_mode: join(packageRoot(), 'examples/11-own-loss/my-loss.ts') } },
        trainer: { total_training_steps: 1 },
      }),
      await loop.completed({ kind: 'sft', trainer: { total_training_steps: 2 } }),
      await loop.completed({
        rollout: { n: 2 },
        actor: { policy_loss: { loss_mode: 'online_dpo' } },
        trainer: { total_training_steps: 1 },
      }),
      await loop.completed({
        algorithm: { adv_estimator: 'prime' },
        reward: { prime: { update: 'after' } },
        trainer: { total_training_steps: 1 },
      }),
      await loop.completed({
        actor: { policy_loss: { loss_mode: 'flowrl' } },
        trainer: { total_training_steps: 1 },
      }),
      ...(await Promise.all(
        [
          { loss_mode: 'forward_kl_topk', topk: 4 },
          { loss_mode: 'k1', use_policy_gradient: true },
        ].map((loss) =>
          loop.completed({
            distillation: {
              enabled: true,
              teacher_model: { model_path: loop.modelFolder },
              distillation_loss: loss,
            },
            trainer: { total_training_steps: 1 },
          }),
        ),
      )),
      await loop.completed({ kind: 'dpo', trainer: { total_training_steps: 2 } }),
      trainedModel,
    ];
    const rewardModel = join(loop.home, 'reward-model');
    await exportPolicy(trainedModel.log, { folder: rewardModel }, { home: loop.home });
    runs.push(
      await loop.completed({
        reward: { reward_model: { enable: true, path: rewardModel } },
        trainer: { total_training_steps: 1 },
      }),
    );
    await loop.up(separatePools);
    runs.push(await loop.completed({ trainer: { total_training_steps: 2 } }));
    const rows = await Promise.all(runs.map(({ log }) => metricRows(log)));
    reported = rows.flatMap(metricNames).map(inTable);
  });
  afterAll(() => loop.remove());
  const iterationsOf = (run: StartedRun | undefined): Promise<Iteration[]> => loop.iterations(run as StartedRun);

  it('are all in the table', () => {
    expect(reported.length).toBeGreaterThan(30);
    expect(reported.filter((name) => metricInfo(name) === undefined)).toEqual([]);
    expect(listMetrics(reported).every(({ doc }) => doc !== '')).toBe(true);
  });

  it('have the entropy of the sampling policy without a coefficient, and no entropy in the loss', async () => {
    const made = await iterationsOf(runs[1]);
    expect(made.map(({ update }) => Number(update.metrics['actor/entropy']) > 0)).toEqual([true, true]);
    expect(made[0]?.update.metrics).not.toHaveProperty('actor/entropy_loss');
    // With several steps the batch record has it, because the first step's forward pass sees only a part of the batch.
    const [first] = await iterationsOf(runs[0]);
    expect(Number(first?.batch.metrics['actor/entropy'])).toBeGreaterThan(0);
    expect(first?.update.metrics).not.toHaveProperty('actor/entropy');
  });

  it('have what the scorer returns, and call only an acc accuracy', async () => {
    const [scored, judged] = await Promise.all(runs.map(({ log }) => log.evaluations.all()));
    expect(measureOf(scored?.[0]?.metrics ?? {})).toBe('score');
    expect(measureOf(judged?.[0]?.metrics ?? {})).toBe('accuracy');
    expect(judged?.[0]?.metrics).toMatchObject({
      'val-core/arithmetic/acc/mean@4': expect.closeTo(Number(judged?.[0]?.accuracy), 12),
      'val-core/arithmetic/acc/maj@4/mean': expect.any(Number),
      'val-aux/arithmetic/reward/std@4': expect.any(Number),
      'val-aux/arithmetic/length/worst@2/mean': 5,
    });
    expect(judged?.[0]?.questions).toBe(4 * Number(scored?.[0]?.questions));
    const [first] = await iterationsOf(runs[1]);
    expect(first?.batch.metrics).toMatchObject({
      'reward_extra/length/mean': 5,
      'reward_extra/acc/mean': expect.any(Number),
    });
  });

  it('have times that add up: the step is longer than its update', async () => {
    for (const { batch, update } of await iterationsOf(runs[0])) {
      const of = (name: string) => Number(update.timings[name] ?? batch.timings[name]);
      expect(of('timing_s/step')).toBeGreaterThanOrEqual(of('timing_s/update_actor'));
      expect(of('timing_s/step')).toBeGreaterThanOrEqual(of('timing_s/batch'));
      expect(of('timing_s/batch')).toBeGreaterThanOrEqual(of('timing_s/gen'));
      expect(of('timing_s/advantage')).toBeGreaterThanOrEqual(of('timing_s/adv') + of('timing_s/ref'));
      expect(of('perf/throughput')).toBeCloseTo(of('perf/total_num_tokens') / of('timing_s/step'), 6);
    }
  });

  it('include every name in the table', () => {
    const used = new Set(reported.map((name) => metricInfo(name)?.name));
    // Mixtures need torch: tests/engines/mixture.test.ts.
    const ofMixtures = /^actor\/(?:router_aux_loss|expert_load_m(?:ax|in)|idle_experts)$/;
    const expected = METRICS.map(({ name }) => name).filter((name) => !ofMixtures.test(name));
    expect(expected.filter((name) => !used.has(name))).toEqual([]);
  });
});
