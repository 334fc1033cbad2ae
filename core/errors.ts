/**
 * petrel's five kinds of error. The class tells the runtime what to do; the text says what was expected, what came, and
 * what to do. `infra/temporal/failures.ts` is the one place that maps them to Temporal failures.
 */

export interface ErrorDetail {
  /** What to try next: one sentence or one command. */
  readonly hint?: string;
  /** The place of the error: `recipe.yaml:3:7`, a row, a store key, a worker. */
  readonly where?: string;
  readonly cause?: unknown;
}

export type PetrelErrorKind = 'terminal' | 'retryable' | 'pause' | 'preempted' | 'unfit';

/**
 * Base of all errors that petrel throws on purpose. The set of `code`s is stable and closed, so callers may branch on
 * it.
 */
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

/** A retry cannot help: bad input, a fence, a damaged object that cannot be replaced. */
export class TerminalError extends PetrelError {
  readonly kind = 'terminal';
}

/** A retry may help: a lost connection, a dead worker, a slow store. */
export class RetryableError extends PetrelError {
  readonly kind = 'retryable';
}

/** A person must act: the run pauses with this reason, and nothing is lost. */
export class PauseError extends PetrelError {
  readonly kind = 'pause';
}

/**
 * This process was asked to leave, which is no failure. Another process runs the work, at no cost of the retry budget.
 */
export class PreemptedError extends PetrelError {
  readonly kind = 'preempted';
}

/**
 * This process cannot do the work, but another one may: the store denies it access, a secret is missing, its disk is
 * full, it runs another build. The work goes to another process at no cost. While there is none, the run waits.
 */
export class UnfitError extends PetrelError {
  readonly kind = 'unfit';
}

/**
 * Did the work fail for a reason that says nothing about the object, such as an unavailable store or a cancelled job?
 */
export function saysNothingOfData(error: unknown): boolean {
  return error instanceof PetrelError && ['retryable', 'preempted', 'unfit'].includes(error.kind);
}

/** Terminal: another writer owns this position of the log. The error names that writer. */
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

/** Rebuilds an error of another process from its kind and JSON form. */
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

/** The JSON form of an error, in `--json` output and in messages. */
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

/** Anything thrown, in the form in which one thread tells another. */
export interface ThrownJson {
  readonly kind: PetrelErrorKind | 'unknown';
  readonly error: ErrorJson;
  readonly stack: string;
}

export function thrownToJson(thrown: unknown): ThrownJson {
  return {
    kind: thrown instanceof PetrelError ? thrown.kind : 'unknown',
    error: errorToJson(thrown),
    stack: thrown instanceof Error ? (thrown.stack ?? '') : '',
  };
}

/** The error again. One that is not petrel's own keeps its stack. */
export function thrownFromJson({ kind, error, stack }: ThrownJson): Error {
  const { code, message, ...detail } = error;
  if (kind !== 'unknown') return errorOfKind(kind, code, message, detail);
  const unknown = new Error(message);
  unknown.stack = stack;
  return unknown;
}
