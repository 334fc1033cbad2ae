/**
 * Limits the work of one rendering. A chat template comes with a model from the hub, and three nested loops over
 * `range(100000)` would keep a process busy for years. Work is counted, not timed, so the same template and chat always
 * give the same result.
 */
import { refuse } from './errors.ts';

/** Budget of one rendering, in units: about one second. A chat of a megabyte needs about a tenth of it. */
export const maxWork = 4_000_000;

/** Characters per unit: native string functions are this much faster than the evaluation of a node. */
const charactersPerUnit = 16;

/** Rendering is synchronous, so at most one is in progress. */
let left = maxWork;

/** Starts a rendering with the full budget. */
export function resetBudget(): void {
  left = maxWork;
}

/** Units that the last rendering used. */
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
