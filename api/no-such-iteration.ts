import { TerminalError } from '../core/errors.ts';

/** Throws TerminalError `NotFound` with the existing numbers. */
export function noSuchIteration(what: string, wanted: number | undefined, there: readonly number[]): TerminalError {
  const missing = wanted === undefined ? `there is no ${what} yet` : `there is no ${what} ${wanted}`;
  const range = there.length === 0 ? undefined : there.length > 8 ? `${there[0]} … ${there.at(-1)}` : there.join(', ');
  return new TerminalError('NotFound', missing, range === undefined ? {} : { hint: `there are: ${range}` });
}
