/**
 * The five kinds of error that petrel knows. The class says what the runtime should do; the text says what was
 * expected, what came, and what to do. `infra/temporal/failures.ts` is the one place that maps them to Temporal failures.
 */

export interface ErrorDetail {
  /** What to try next: one sentence or one command. */
  readonly hint?: string;
  /** Where: `recipe.yaml:3:7`, a row, a store key, a worker. */
  readonly where?: string;
  readonly cause?: unknown;
}

export type PetrelErrorKind = 'terminal' | 'retryable' | 'pause' | 'preempted' | 'unfit';

/** Base of all errors that petrel raises on purpose. `code` is stable and closed: callers may branch on it. */
export abstract class PetrelError extends Error {
  abstract readonly kind: PetrelErrorKind;
  readonly code: string;
  readonly hint: string | undefined;
  readonly where: string | undefined;

  constructor(code: string, message: string, detail: ErrorDetail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = detail.hint;
    this.where = detail.where;
  }
}

/** Trying again cannot help: bad input, a fence, a damaged object without a substitute. */
export class TerminalError extends PetrelError {
  readonly kind = 'terminal';
}

/** Trying again may help: a lost connection, a worker that vanished, a slow store. */
export class RetryableError extends PetrelError {
  readonly kind = 'retryable';
}

/** A person must decide: the run is paused with this reason, nothing is lost. */
export class PauseError extends PetrelError {
  readonly kind = 'pause';
}

/** Not a failure: this process was asked to leave. The work goes on elsewhere and costs no retry budget. */
export class PreemptedError extends PetrelError {
  readonly kind = 'preempted';
}

/**
 * This process cannot do the work, another one may: the store does not let it in, a secret is missing, its disk is full, it
 * runs another build. The work goes elsewhere at no cost. While no process can do it, the run waits.
 */
export class UnfitError extends PetrelError {
  readonly kind = 'unfit';
}

/** Work on an object ended for another reason than the object: the store did not answer, or the work was taken away. */
export function saysNothingOfData(error: unknown): boolean {
  return error instanceof PetrelError && ['retryable', 'preempted', 'unfit'].includes(error.kind);
}

/** Terminal: another writer owns this position of the log. Names the owner. */
export class FencedError extends TerminalError {
  constructor(message: string, detail: ErrorDetail = {}) {
    super('Fenced', message, detail);
  }
}

/** A terminal error that the user must fix: a recipe, an override, a data row, a model folder. Exit code 2. */
export class InvalidInputError extends TerminalError {
  constructor(message: string, detail: ErrorDetail = {}) {
    super('InvalidInput', message, detail);
  }
}

/** The error that another process told of by its kind and JSON form. */
export function errorOfKind(
  kind: PetrelErrorKind,
  code: string,
  message: string,
  detail: ErrorDetail = {},
): PetrelError {
  if (code === 'Fenced') return new FencedError(message, detail);
  if (code === 'InvalidInput') return new InvalidInputError(message, detail);
  switch (kind) {
    case 'terminal':
      return new TerminalError(code, message, detail);
    case 'retryable':
      return new RetryableError(code, message, detail);
    case 'pause':
      return new PauseError(code, message, detail);
    case 'preempted':
      return new PreemptedError(code, message, detail);
    case 'unfit':
      return new UnfitError(code, message, detail);
  }
}

/** The JSON form of an error, as `--json` prints it and the wire carries it. */
export interface ErrorJson {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly where?: string;
}

export function errorToJson(error: unknown): ErrorJson {
  if (error instanceof PetrelError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      ...(error.where === undefined ? {} : { where: error.where }),
    };
  }
  return { code: 'Internal', message: error instanceof Error ? error.message : String(error) };
}
