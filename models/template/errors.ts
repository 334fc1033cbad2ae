/** Errors of chat templates. */
import { InvalidInputError } from '../../core/errors.ts';

/**
 * Thrown while a template is parsed or rendered. `reason` is the bare text; for `raise_exception` it is the template's
 * own message.
 */
export class TemplateError extends InvalidInputError {
  readonly reason: string;
  /** Line of the template, from 1. */
  readonly line: number;

  constructor(reason: string, line: number) {
    super(`chat template, line ${line}: ${reason}`, { where: `chat_template:${line}` });
    this.reason = reason;
    this.line = line;
  }
}

/** An operation that Python would refuse. The evaluator adds the line and converts it to a TemplateError. */
export class OperationError extends Error {}

/** Shorthand for use in expressions. */
export function refuse(reason: string): never {
  throw new OperationError(reason);
}
