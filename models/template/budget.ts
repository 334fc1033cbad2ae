/**
 * What one rendering may cost. A chat template comes with a model from the hub: three nested loops over `range(100000)`
 * would keep a process busy for years. Work is counted, not timed, so the same template on the same chat always gives the
 * same answer.
 */
import { refuse } from './errors.ts';

/** Units of one rendering: about a second. A chat of a megabyte takes about a tenth of them. */
export const maxWork = 4_000_000;

/** Characters that one unit handles: native string functions are that much faster than the evaluation of a node. */
const charactersPerUnit = 16;

/** Rendering never waits, so only one is in progress. */
let left = maxWork;

/** Starts a rendering: it has the whole budget. */
export function resetBudget(): void {
  left = maxWork;
}

/** Units that the last rendering took. */
export function workDone(): number {
  return maxWork - left;
}

/** One unit is one evaluated node, one executed statement, one item of a list or 16 characters of text. */
export function spend(units: number): void {
  left -= units;
  if (left < 0) {
    refuse(
      `the template takes more than ${maxWork.toLocaleString('en')} steps for one chat: its loops are too long or its texts too large`,
    );
  }
}

/** `length` in characters. */
export function spendOnText(length: number): void {
  spend(Math.floor(length / charactersPerUnit));
}
