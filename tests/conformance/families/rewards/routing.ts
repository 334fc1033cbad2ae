import { functionScorer, isPythonScorer } from '../../../../rewards/registry.ts';
import { routeOf } from '../../../../rewards/routing.ts';
import { toScored } from '../../../../rewards/result.ts';
import type { Scored } from '../../../../rewards/types.ts';
import { inputsOf } from '../../padded.ts';
import type { GoldenCase, Outcome } from '../../types.ts';
import { scoredInPython } from './python-scorers.ts';
import { scorerInput } from './scorers.ts';

/** Scorers whose result is an object in verl. petrel's others return `acc` too, where verl returns a number. */
const withColumns: readonly string[] = ['math_dapo'];

/** The scorer of a data source, or a score through it. @throws for a source that verl does not know. */
export async function routing(testCase: GoldenCase): Promise<Outcome> {
  const dataSource = inputsOf(testCase).string('data_source');
  const route = routeOf(dataSource);
  if (route === undefined) throw new Error(`no scorer for ${dataSource}`);
  const { scorer, inVerl = scorer } = route;
  if (!inputsOf(testCase).has('solution_str')) return { scorer: inVerl };
  const input = scorerInput(testCase, dataSource);
  const scored = isPythonScorer(scorer)
    ? await scoredInPython(scorer, input)
    : toScored(await functionScorer(scorer).score(input, {}));
  return { result: asInVerl(scorer, scored) };
}

/** verl's result for a sample: a number, or an object with columns. */
export function asInVerl(scorer: string, { score, columns }: Scored): number | Readonly<{ score: number }> {
  return withColumns.includes(scorer) ? { score, ...columns } : score;
}
