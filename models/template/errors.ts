/** What goes wrong in a chat template. */
import { InvalidInputError } from '../../core/errors.ts';

/** Raised while a template is parsed or rendered. `reason` is the bare text: for `raise_exception`, the template's own words. */
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

/** An operation that Python would refuse; the evaluator adds the line and makes it a TemplateError. */
export class OperationError extends Error {}

/** Shorthand for use in expressions. */
export function refuse(reason: string): never {
  throw new OperationError(reason);
}
