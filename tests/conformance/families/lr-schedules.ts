import { lrFactor, resolveWarmupSteps, type LrScheduler, type LrSchedule } from '../../../core/rl/lr-schedule.ts';
import { pureEvaluator } from '../evaluators.ts';
import { inputsOf, paramsOf } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const lrSchedules = pureEvaluator('optim', { lr_schedules: schedules });

function schedules(testCase: GoldenCase): Outcome {
  const params = paramsOf(testCase);
  if (params.has('lr_warmup_steps')) {
    const [steps, ratio, total] = ['lr_warmup_steps', 'lr_warmup_steps_ratio', 'total_training_steps'].map(
      params.number,
    );
    return { num_warmup_steps: resolveWarmupSteps(steps!, ratio!, total!) };
  }
  const schedule: LrSchedule = {
    type: params.string('kind') as LrScheduler,
    warmupSteps: params.number('num_warmup_steps'),
    totalSteps: params.number('num_training_steps'),
    minLrRatio: params.optionalNumber('min_lr_ratio'),
    numCycles: params.optionalNumber('num_cycles'),
    initLrRatio: params.optionalNumber('init_lr_ratio'),
    zeroIndexedStep: params.has('zero_indexed_step') ? params.flag('zero_indexed_step') : undefined,
    stableRatio: params.optionalNumber('stable_ratio'),
  };
  const base = params.number('base_lr');
  const steps = inputsOf(testCase).number('num_steps');
  return { lr_before_step: Array.from({ length: steps }, (_, step) => base * lrFactor(schedule, step)) };
}
