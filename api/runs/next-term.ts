/**
 * The plan of the new term that a `resume` needs when it continues from an earlier iteration, changes the recipe, or
 * takes the run over from another stack. The plan is made from the store and shown; the term is opened only after the
 * user accepts it.
 */
import { TerminalError } from '../../core/errors.ts';
import type { RecipeChange } from '../../core/recipe/index.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import type { Head } from '../../log/run/run-log.ts';
import { abandonedAfter } from './abandoned.ts';
import type { AbandonedIteration } from './abandoned.ts';
import type { ChangedRecipe } from './changed-recipe.ts';
import type { FoundRun } from '../stores/find.ts';
import { endedStates } from '../../core/run-states.ts';

export interface TermRequest {
  /** This stack. */
  readonly owner: string;
  /** The last iteration that remains valid; default: all remain. */
  readonly from: number | undefined;
  readonly skipDraws: boolean;
  readonly changed: ChangedRecipe | undefined;
}

export interface TermPlan {
  readonly head: Head;
  /** The position from which the new term continues. */
  readonly position: number;
  readonly reason: string;
  readonly abandoned: readonly AbandonedIteration[];
  /** The other stack that drives the run until then, if any. */
  readonly rival: string | undefined;
  /** Sentences about what the new term discards or changes. When there are none, no confirmation is needed. */
  readonly concerns: readonly string[];
  readonly changes: readonly RecipeChange[];
}

/** Undefined when the run continues in its present term. */
export async function planTerm(
  { runId, log }: FoundRun,
  status: StatusEntry | undefined,
  request: TermRequest,
): Promise<TermPlan | undefined> {
  const head = await log.head();
  if (head === undefined) {
    if (request.from === undefined && request.changed === undefined) return undefined;
    throw new TerminalError('Conflict', `${runId} has not started: there is no state to continue from`, {
      hint: 'petrel run starts another run',
    });
  }
  const { termRecord } = head;
  const rival = termRecord.owner === request.owner ? undefined : termRecord.owner;
  if (request.from === undefined && request.changed === undefined && rival === undefined && head.seal === undefined)
    return undefined;
  const position = request.from ?? head.position;
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
    reason: reasonOf(request, rival, head),
    abandoned,
    rival,
    changes: request.changed?.changes ?? [],
    concerns: [
      ...(request.from !== undefined && abandoned.length > 0
        ? [`${iterationsText(abandoned)} no longer ${abandoned.length === 1 ? 'counts' : 'count'}`]
        : []),
      ...(rival !== undefined && !ended
        ? [`${rival} drives it (${status.state}, ${lastWord(head)}) and is fenced off`]
        : []),
      ...(request.changed?.asks.length
        ? [
            `${request.changed.asks.map(({ path }) => path).join(', ')} ${request.changed.asks.length === 1 ? 'changes' : 'change'} the experiment`,
          ]
        : []),
    ],
  };
}

function reasonOf({ from, skipDraws, changed }: TermRequest, rival: string | undefined, { seal }: Head): string {
  const parts = [
    ...(from === undefined ? [] : [`redo from iteration ${from}${skipDraws ? ' with other draws' : ''}`]),
    ...(changed === undefined ? [] : [`changed recipe: ${changed.changes.map(({ path }) => path).join(', ')}`]),
    ...(rival === undefined ? [] : [`taken over from ${rival}`]),
  ];
  return parts.length > 0 ? parts.join('; ') : `continues after ${seal?.record.reason ?? 'its end'}`;
}

function iterationsText(abandoned: readonly AbandonedIteration[]): string {
  const [first, last] = [abandoned[0]?.iteration, abandoned.at(-1)?.iteration];
  return first === last ? `iteration ${first}` : `iterations ${first} to ${last}`;
}

const lastWord = ({ position, termRecord: { term, writer } }: Head): string =>
  `${position} iterations, term ${term} since ${writer.at}`;
