import { describe, expect, it } from 'vitest';
import type { Components } from '../../core/records/components.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { UpdateOutput } from '../../core/wire/jobs/index.ts';
import { joinedUpdate } from './joined-update.ts';

const digest = (letter: string) => letter.repeat(64);
const runStateOf = (components: Components<{ readonly stateDigest: string }>): string =>
  Object.entries(components)
    .map(([name, { stateDigest }]) => `${name} ${stateDigest}`)
    .join(', ');
const counters = { cursor: 4, optimizerSteps: {}, controllers: { klCoef: 0 } };
const record = {
  components: { actor: {}, critic: {} },
  before: { ...counters, badSteps: 2 },
  after: { ...counters, badSteps: 2 },
} as unknown as BatchRecord;

/** What a trainer of one component answers; `taken`: of each of its steps. */
function output(name: string, taken: readonly boolean[], metrics: UpdateOutput['metrics']): UpdateOutput {
  const state = { stateDigest: digest(name.charAt(0)), weightsDigest: digest('0') };
  const isTaken = taken.some(Boolean);
  return {
    outcome: isTaken ? 'applied' : 'skipped',
    ...(isTaken ? {} : { reason: `none of the ${name}` }),
    stateDigest: state.stateDigest,
    components: {
      [name]: { ...state, publications: {}, steps: taken.map((one) => ({ lr: 1, gradNorm: 1, taken: one })) },
    },
    after: { ...record.after, badSteps: isTaken ? 0 : 3 },
    metrics: { 'training/skipped_steps': taken.filter((one) => !one).length, ...metrics },
  };
}

const joined = (actor: readonly boolean[], critic: readonly boolean[]) =>
  joinedUpdate({ runStateOf }, record, [
    {
      output: output('actor', actor, { 'actor/lr': 1 }),
      timings: { 'timing_s/update': 2, 'timing_s/update_actor': 2 },
    },
    {
      output: output('critic', critic, { 'critic/lr': 2 }),
      timings: { 'timing_s/update': 3, 'timing_s/update_critic': 3 },
    },
  ]);

describe('the update of a run that is divided', () => {
  it('has the components, metrics and longest times of its parts, and the state of all', () => {
    const { output: whole, timings } = joined([true, false], [true, true]);
    expect(whole).toMatchObject({
      outcome: 'applied',
      after: { badSteps: 0 },
      metrics: { 'actor/lr': 1, 'critic/lr': 2, 'training/skipped_steps': 1 },
      stateDigest: runStateOf({ actor: { stateDigest: digest('a') }, critic: { stateDigest: digest('c') } }),
    });
    expect(Object.keys(whole.components)).toEqual(['actor', 'critic']);
    expect('reason' in whole).toBe(false);
    expect(timings).toEqual({ 'timing_s/update': 3, 'timing_s/update_actor': 2, 'timing_s/update_critic': 3 });
  });

  it('is applied when one of them has taken a step, and says of the steps what those of the policy were', () => {
    expect(joined([false], [true]).output).toMatchObject({ outcome: 'applied', after: { badSteps: 0 } });
    expect(joined([false], [true]).output.metrics['training/skipped_steps']).toBe(1);
    expect(joined([true], [false]).output.metrics['training/skipped_steps']).toBe(0);
  });

  it('is skipped when none has, for the reason of the policy', () => {
    expect(joined([false, false], [false]).output).toMatchObject({
      outcome: 'skipped',
      reason: 'none of the actor',
      after: { badSteps: 3 },
      metrics: { 'training/skipped_steps': 2 },
    });
  });

  it('is about the critic in an iteration that trains only it', () => {
    expect(joined([], [false]).output).toMatchObject({
      outcome: 'skipped',
      reason: 'none of the critic',
      metrics: { 'training/skipped_steps': 1 },
    });
    expect(joined([], [true, true]).output).toMatchObject({ outcome: 'applied' });
    expect(joined([], []).output).toMatchObject({ outcome: 'skipped', reason: 'none of the actor' });
  });
});
