/**
 * The seeds that the tests play. Together they cover the list of faults and places once: the last seeds, which have
 * roles apart, on each of the other algorithms, one seed each, and the first ones on GRPO; `npm test` plays the first
 * two of those. Runs without samples have lists of their own. `npm run test:recovery` plays other seeds.
 */
import { plansOf, seedsPerCycle } from './plan.ts';
import type { Plan } from './plan.ts';
import { samples, subjectNames } from './subjects.ts';

export const otherSubjects = subjectNames.filter((name) => name !== 'grpo');
const sampling = otherSubjects.filter(samples);
/** A seed in which the trainer dies while it writes a checkpoint, among other faults. */
const seedOfOwnList = 3;

export function plansOfOthers(): readonly Plan[] {
  const first = 1 + seedsPerCycle() - sampling.length;
  const ownLists = otherSubjects.filter((name) => !samples(name));
  return [
    ...sampling.flatMap((subject, i) => plansOf(first + i, 1, undefined, subject)),
    ...ownLists.flatMap((subject) => plansOf(seedOfOwnList, 1, undefined, subject)),
  ];
}

export function plansOfGrpo(): readonly Plan[] {
  return plansOf(1, seedsPerCycle() - sampling.length);
}

/** What `npm test` shows of all this: the first seeds on GRPO. */
export const firstPlans = (): readonly Plan[] => plansOfGrpo().slice(0, 2);

/** The other seeds on GRPO. */
export const laterPlans = (): readonly Plan[] => plansOfGrpo().slice(2);
