/**
 * What a `resume` needs besides a workflow: a new term, when it goes on from an earlier iteration, with another recipe, or
 * on another stack than before. Planned from the store, shown, accepted, and only then opened.
 */
import { TerminalError } from '../../core/errors.ts';
import type { RecipeChange } from '../../core/recipe/index.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import type { Head } from '../../infra/store/run-log.ts';
import type { Printer } from '../printer/printer.ts';
import { abandonedAfter, abandonedTable } from './abandoned.ts';
import type { AbandonedIteration } from './abandoned.ts';
import { changeText } from './changed-recipe.ts';
import type { ChangedRecipe } from './changed-recipe.ts';
import type { FoundRun } from './find.ts';
import { endedStates } from './summary.ts';

export interface TermWish {
  /** This stack. */
  readonly owner: string;
  /** The last iteration that still counts; left out: all do. */
  readonly from: number | undefined;
  readonly skipDraws: boolean;
  readonly changed: ChangedRecipe | undefined;
}

export interface TermPlan {
  readonly head: Head;
  /** The position that the new term goes on from. */
  readonly position: number;
  readonly reason: string;
  readonly abandoned: readonly AbandonedIteration[];
  /** The stack that drives the run until then, when it is another. */
  readonly rival: string | undefined;
  /** Sentences about what is lost or changed by it; none: nobody needs to be asked. */
  readonly concerns: readonly string[];
  readonly changes: readonly RecipeChange[];
}

/** undefined: the run goes on in the term it is in. */
export async function planTerm(
  { runId, log }: FoundRun,
  status: StatusEntry | undefined,
  wish: TermWish,
): Promise<TermPlan | undefined> {
  const head = await log.head();
  if (head === undefined) {
    if (wish.from === undefined && wish.changed === undefined) return undefined;
    throw new TerminalError('Conflict', `${runId} has not begun: there is nothing to go on from`, {
      hint: 'petrel run starts another run',
    });
  }
  const { termRecord } = head;
  const rival = termRecord.owner === wish.owner ? undefined : termRecord.owner;
  if (wish.from === undefined && wish.changed === undefined && rival === undefined && head.seal === undefined)
    return undefined;
  const position = wish.from ?? head.position;
  const from = await log.first();
  if (position < from || position > head.position) {
    throw new TerminalError('NotFound', `${runId} has no committed iteration ${position}`, {
      hint: `--from takes ${from} to ${head.position}`,
    });
  }
  const abandoned = await abandonedAfter(log, head, position);
  const ended = status === undefined || endedStates.has(status.state);
  return {
    head,
    position,
    reason: reasonOf(wish, rival, head),
    abandoned,
    rival,
    changes: wish.changed?.changes ?? [],
    concerns: [
      ...(wish.from !== undefined && abandoned.length > 0
        ? [`${iterationsText(abandoned)} no longer ${abandoned.length === 1 ? 'counts' : 'count'}`]
        : []),
      ...(rival !== undefined && !ended
        ? [`${rival} drives it (${status.state}, ${lastWord(head)}) and is fenced off`]
        : []),
      ...(wish.changed?.asks.length
        ? [
            `${wish.changed.asks.map(({ path }) => path).join(', ')} ${wish.changed.asks.length === 1 ? 'changes' : 'change'} the experiment`,
          ]
        : []),
    ],
  };
}

/** What is shown before anybody says yes. */
export function showPlan(
  { runId }: FoundRun,
  { position, abandoned, reason, changes }: TermPlan,
  printer: Printer,
): void {
  printer.notice(`${runId} goes on after iteration ${position} in a new term: ${reason}`);
  for (const change of changes) printer.notice(`  ${changeText(change)}`);
  if (abandoned.length > 0) printer.notice(abandonedTable(abandoned, printer));
}

function reasonOf({ from, skipDraws, changed }: TermWish, rival: string | undefined, { seal }: Head): string {
  const parts = [
    ...(from === undefined ? [] : [`redo from iteration ${from}${skipDraws ? ' with other draws' : ''}`]),
    ...(changed === undefined ? [] : [`changed recipe: ${changed.changes.map(({ path }) => path).join(', ')}`]),
    ...(rival === undefined ? [] : [`taken over from ${rival}`]),
  ];
  return parts.length > 0 ? parts.join('; ') : `goes on after ${seal?.record.reason ?? 'its end'}`;
}

function iterationsText(abandoned: readonly AbandonedIteration[]): string {
  const [first, last] = [abandoned[0]?.iteration, abandoned.at(-1)?.iteration];
  return first === last ? `iteration ${first}` : `iterations ${first} to ${last}`;
}

const lastWord = ({ position, termRecord: { term, writer } }: Head): string =>
  `${position} iterations, term ${term} since ${writer.at}`;
