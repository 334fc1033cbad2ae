import { ActivityFailure, type ApplicationFailure, RetryState } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import {
  FencedError,
  InvalidInputError,
  PauseError,
  PreemptedError,
  RetryableError,
  TerminalError,
} from '../../core/errors.ts';
import type { PetrelError } from '../../core/errors.ts';
import { pauseType } from '../../core/wire/workflow.ts';
import { errorToFailure, failureToError } from './failures.ts';

const detail = { hint: 'do this', where: 'run.json' };
const cases: [PetrelError, { type: string; nonRetryable: boolean }][] = [
  [new TerminalError('Damaged', 'gone', detail), { type: 'Damaged', nonRetryable: true }],
  [new FencedError('owned by b', detail), { type: 'Fenced', nonRetryable: true }],
  [new InvalidInputError('bad', detail), { type: 'InvalidInput', nonRetryable: true }],
  [new PauseError('NoSpace', 'disk is full', detail), { type: pauseType, nonRetryable: true }],
  [new RetryableError('StoreSlow', '503', detail), { type: 'StoreSlow', nonRetryable: false }],
  [new PreemptedError('Leaving', 'notice', detail), { type: 'Leaving', nonRetryable: false }],
];

describe('errors across Temporal', () => {
  it.each(cases)('%s survives the way through Temporal and back', (error, expected) => {
    const failure = errorToFailure(error) as ApplicationFailure;
    expect({ type: failure.type, nonRetryable: failure.nonRetryable }).toEqual(expected);

    const back = failureToError(failure);
    expect(back.constructor).toBe(error.constructor);
    expect(back).toMatchObject({ kind: error.kind, code: error.code, message: error.message, ...detail });
  });

  it('finds the error below an activity failure', () => {
    const inner = errorToFailure(new PauseError('NoSpace', 'disk is full'));
    const outer = new ActivityFailure(
      'activity failed',
      'update',
      '1',
      RetryState.NON_RETRYABLE_FAILURE,
      'worker',
      inner,
    );
    expect(failureToError(outer)).toMatchObject({ kind: 'pause', code: 'NoSpace' });
  });

  it('makes an unknown error retryable', () => {
    const failure = errorToFailure(new TypeError('x is undefined')) as ApplicationFailure;
    expect(failure.nonRetryable).toBeFalsy();
    expect(failureToError(failure)).toMatchObject({ kind: 'retryable', code: 'Internal', message: 'x is undefined' });
  });
});
