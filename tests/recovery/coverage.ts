/**
 * The seeds that the tests play. Together they cover the list of faults and places once: the first seeds on each of the
 * other algorithms, one seed each, and the rest on GRPO. `npm test` plays the first two of those.
 * `npm run test:recovery` plays other seeds.
 */
import { plansOf, seedsPerCycle } from './plan.ts';
import type { Plan } from './plan.ts';
import { subjectNames } from './subjects.ts';

export const otherSubjects = subjectNames.filter((name) => name !== 'grpo');

export function plansOfOthers(): readonly Plan[] {
  return otherSubjects.flatMap((subject, i) => plansOf(1 + i, 1, undefined, subject));
}

export function plansOfGrpo(): readonly Plan[] {
  const played = otherSubjects.length;
  return plansOf(1 + played, seedsPerCycle() - played);
}

/** What `npm test` shows of all this: the first seeds on GRPO. */
export const firstPlans = (): readonly Plan[] => plansOfGrpo().slice(0, 2);

/** The other seeds on GRPO. */
export const laterPlans = (): readonly Plan[] => plansOfGrpo().slice(2);
