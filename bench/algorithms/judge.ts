/** Decides whether a finished run shows what its entry promises. */
import { checked, expect } from './checks.ts';
import type { Checked } from './checks.ts';
import type { AlgorithmEntry, Result } from './entry.ts';
import type { Observed, Validation } from './observed.ts';

/** A mean over questions and its standard error. The error is absent where the number of questions is not known. */
export interface Estimate {
  readonly value: number;
  readonly error?: number;
}

export interface Judgement {
  readonly before?: Estimate;
  readonly after?: Estimate;
  readonly checks: readonly Checked[];
}

/** The accuracy must rise by so much, and by more than so many standard errors of the difference. */
const smallestRise = 0.1;
const standardErrors = 2;

/** Enough steps on a batch that the policy differs from the one that sampled, so that losses differ from each other. */
export const fewestSteps = 4;
const stepsTaken = [
  expect('last', 'record/optimizer_steps/actor', '>=', fewestSteps),
  expect('sum of', 'training/skipped_steps', '<=', 0),
];

/** `samples`: does the run train on responses that it samples? */
export function judge({ mechanism, result }: AlgorithmEntry, observed: Observed, samples: boolean): Judgement {
  const { before, after, checks } = result === undefined ? accuracyOf(observed) : metricOf(result, observed);
  const all = [...(samples ? stepsTaken : []), ...mechanism];
  return {
    ...(before && { before }),
    ...(after && { after }),
    checks: [...checks, ...all.map((check) => checked(check, observed.series))],
  };
}

function accuracyOf({ validations }: Observed): Judgement {
  const [first, last] = [validations.at(0), validations.at(-1)];
  if (first === undefined || last === undefined || validations.length < 2)
    return { checks: [{ text: 'a validation before and after the training', value: validations.length, ok: false }] };
  const [before, after] = [estimate(first), estimate(last)];
  const rise = after.value - before.value;
  const errors = rise / Math.hypot(before.error, after.error);
  return {
    before,
    after,
    checks: [
      { text: `accuracy rises by >= ${smallestRise}`, value: rise, ok: rise >= smallestRise },
      { text: `accuracy rises by > ${standardErrors} standard errors`, value: errors, ok: errors > standardErrors },
    ],
  };
}

const estimate = ({ accuracy, questions }: Validation): Required<Estimate> => ({
  value: accuracy,
  error: Math.sqrt((accuracy * (1 - accuracy)) / questions),
});

function metricOf({ metric, atLeast }: Result, { series }: Observed): Judgement {
  const values = series.get(metric) ?? [];
  const [first, last] = [values.at(0), values.at(-1)];
  return {
    ...(first !== undefined && values.length > 1 && { before: { value: first } }),
    ...(last !== undefined && { after: { value: last } }),
    checks: [checked(expect('last', metric, '>=', atLeast), series)],
  };
}
