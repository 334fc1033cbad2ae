/**
 * The one place that maps petrel's errors to Temporal failures and back.
 *
 * | petrel    | Temporal                                                                       |
 * |-----------|--------------------------------------------------------------------------------|
 * | terminal  | non-retryable, type = the error's code                                         |
 * | pause     | non-retryable, type `Pause`: the workflow pauses the run                       |
 * | retryable | retryable, type = the error's code                                             |
 * | preempted | retryable, type = the error's code; benign: leaving is no failure to warn of   |
 * | unfit     | retryable, type = the error's code: it waits until this process can do the work |
 *
 * The first detail is always the error as petrel prints it, with its kind, so nothing is lost on the way back.
 */
import {
  ActivityFailure,
  ApplicationFailure,
  ApplicationFailureCategory,
  ChildWorkflowFailure,
  TemporalFailure,
} from '@temporalio/common';
import { errorOfKind, errorToJson, PetrelError, RetryableError, TerminalError } from '../../core/errors.ts';
import type { ErrorDetail, ErrorJson, PetrelErrorKind } from '../../core/errors.ts';
import { pauseType } from '../../core/wire/workflow.ts';

/** First detail of a failure that petrel created. */
export interface FailureDetail extends ErrorJson {
  readonly kind: PetrelErrorKind;
}

/**
 * Converts an error so that an activity can throw it. Temporal's own failures pass through; unknown errors are
 * retryable.
 */
export function errorToFailure(error: unknown): TemporalFailure {
  if (error instanceof TemporalFailure) return error;
  if (!(error instanceof PetrelError)) return ApplicationFailure.fromError(error);
  const detail: FailureDetail = { kind: error.kind, ...errorToJson(error) };
  return ApplicationFailure.create({
    message: error.message,
    type: error.kind === 'pause' ? pauseType : error.code,
    nonRetryable: error.kind === 'terminal' || error.kind === 'pause',
    details: [detail],
    cause: error,
    ...(error.kind === 'preempted' ? { category: ApplicationFailureCategory.BENIGN } : {}),
  });
}

/**
 * The petrel error inside a failure, below any activity or child workflow wrappers. Other errors become `Internal`,
 * retryable if they are.
 */
export function failureToError(failure: unknown): PetrelError {
  if (failure instanceof PetrelError) return failure;
  if ((failure instanceof ActivityFailure || failure instanceof ChildWorkflowFailure) && failure.cause)
    return failureToError(failure.cause);
  if (failure instanceof ApplicationFailure) {
    const detail = failure.details?.[0];
    if (isFailureDetail(detail)) return revive(detail, failure);
    if (failure.nonRetryable) return new TerminalError(failure.type ?? 'Internal', failure.message, { cause: failure });
  }
  return new RetryableError('Internal', errorToJson(failure).message, { cause: failure });
}

function revive({ kind, code, message, hint, where }: FailureDetail, cause: unknown): PetrelError {
  const detail: ErrorDetail = {
    cause,
    ...(hint === undefined ? {} : { hint }),
    ...(where === undefined ? {} : { where }),
  };
  return errorOfKind(kind, code, message, detail);
}

const kinds: ReadonlySet<unknown> = new Set<PetrelErrorKind>(['terminal', 'retryable', 'pause', 'preempted', 'unfit']);

function isFailureDetail(value: unknown): value is FailureDetail {
  if (typeof value !== 'object' || value === null) return false;
  const { kind, code, message } = value as Partial<Record<keyof FailureDetail, unknown>>;
  return kinds.has(kind) && typeof code === 'string' && typeof message === 'string';
}
