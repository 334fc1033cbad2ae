/** The plan of a seed: the pairs of one run, the layout, the iterations, and the visits. */
import type { ArmedFault, FaultFacts } from '../../log/faults/index.ts';
import { engineTitle, variantOf } from './engine-choice.ts';
import type { EngineChoice } from './engine-choice.ts';
import { enginePairs } from './engine-pairs.ts';
import { betweenSteps, faults, pairName, pairs, pairsWithoutSamples } from './pairs.ts';
import type { FaultName, Layout, Pair, When } from './pairs.ts';
import { Seeded } from './seeded.ts';
import { samples } from './subjects.ts';
import type { Subject } from './subjects.ts';

/** Iterations of every run of the suite. A checkpoint is due after every second one, the validation after the last. */
export const iterations = 6;
const perRun = 4;

/** One fault of a run. */
export interface Strike {
  readonly pair: Pair;
  readonly iteration: number;
  readonly nth: number;
}

export interface Plan {
  readonly seed: number;
  readonly subject: Subject;
  readonly layout: Layout;
  readonly strikes: readonly Strike[];
  /** Absent: the native engine. */
  readonly engine?: EngineChoice;
}

/**
 * The iterations in which a pair can happen. The first is left alone, because copies of older states are made in it.
 */
const iterationsOf: Readonly<Record<When, readonly number[]>> = {
  open: [1],
  any: [2, 3, 4, 5, 6],
  saved: [2, 4, 6],
  // The newest checkpoint is from two iterations before.
  replayed: [4, 6],
  evaluated: [iterations],
  end: [iterations],
};

interface Draft {
  readonly layout: Layout;
  readonly strikes: Strike[];
}

/**
 * Plans of the seeds `from` and up. A fixed number of consecutive seeds covers the whole list, in an order of its own.
 * Runs other than GRPO have their roles apart, and lose their trainer between two optimiser steps too.
 */
export function plansOf(from: number, count: number, only?: FaultName, subject: Subject = 'grpo'): Plan[] {
  const listed = pairsOf(subject).filter(({ fault }) => only === undefined || fault === only);
  return numbered(listed, from, count).map(({ seed, layout, strikes }) =>
    subject === 'grpo'
      ? { seed, subject, layout, strikes }
      : { seed, subject, layout: 'apart', strikes: only === undefined ? withStep(strikes) : strikes },
  );
}

/** Plans of runs on engines of others. A fixed number of consecutive seeds covers the list of that choice. */
export function plansOnEngine(engine: EngineChoice, from: number, count: number, only?: FaultName): Plan[] {
  const listed = enginePairs(engine).filter(({ fault }) => only === undefined || fault === only);
  return numbered(listed, from, count).map((plan) => ({ ...plan, subject: 'grpo', engine }));
}

function numbered(listed: readonly Pair[], from: number, count: number): (Draft & { readonly seed: number })[] {
  if (listed.length === 0) throw new Error('these runs have no such fault');
  const plans: (Draft & { readonly seed: number })[] = [];
  for (let cycle = 0, first = 1; first < from + count; cycle++) {
    const drafts = draft(listed, new Seeded(cycle));
    plans.push(...drafts.map((one, i) => ({ ...one, seed: first + i })));
    first += drafts.length;
  }
  return plans.filter(({ seed }) => seed >= from && seed < from + count);
}

const pairsOf = (subject: Subject): readonly Pair[] => (samples(subject) ? pairs : pairsWithoutSamples);

/**
 * With a trainer that dies between two optimiser steps, if possible not just after a fault that waits for a checkpoint.
 */
function withStep(strikes: readonly Strike[]): readonly Strike[] {
  const free = [5, 3, 4, 2, 6].filter((k) => strikes.every((one) => moment(one.pair, one.iteration) !== String(k)));
  const isSaving = (k: number) => strikes.some(({ pair, iteration }) => pair.when === 'saved' && iteration === k);
  const iteration = free.find((k) => !isSaving(k - 1)) ?? free[0];
  if (iteration === undefined) throw new Error('a run of so many faults has no iteration left');
  return [...strikes, { pair: betweenSteps, iteration, nth: 1 }];
}

/**
 * Plans with one fault each, each fault in turn, to measure its cost. Where the pair allows both layouts, each role has
 * its own process.
 */
export function plansAlone(from: number, count: number, only?: FaultName, subject: Subject = 'grpo'): Plan[] {
  const possible = new Set(pairsOf(subject).map(({ fault }) => fault));
  const names = only === undefined ? (Object.keys(faults) as FaultName[]).filter((name) => possible.has(name)) : [only];
  return Array.from({ length: count }, (_, i) => from + i).map((seed) => {
    const random = new Seeded(seed);
    const fault = names[(seed - 1) % names.length];
    const pair = random.pick(pairsOf(subject).filter((one) => one.fault === fault));
    const strike = { pair, iteration: random.pick(iterationsOf[pair.when]), nth: 1 + random.below(pair.visits ?? 1) };
    return { seed, subject, layout: pair.layout ?? 'apart', strikes: [strike] };
  });
}

/** Number of seeds that cover the whole list. */
export const seedsPerCycle = (): number => draft(pairs, new Seeded(0)).length;

/** Seeds are sorted by layout, because another layout needs new workers. */
function draft(listed: readonly Pair[], random: Seeded): Draft[] {
  const drafts: Draft[] = [];
  for (const pair of random.shuffled(listed)) {
    const layout = pair.layout ?? random.pick(['one', 'apart'] as const);
    const nth = 1 + random.below(pair.visits ?? 1);
    const wanted = random.shuffled(iterationsOf[pair.when]);
    const place = wanted
      .map((iteration) => ({
        iteration,
        run: drafts.find((one) => one.layout === layout && hasRoom(one, pair, iteration)),
      }))
      .find(({ run }) => run !== undefined);
    const strike = { pair, iteration: place?.iteration ?? (wanted[0] as number), nth };
    if (place?.run !== undefined) place.run.strikes.push(strike);
    else drafts.push({ layout, strikes: [strike] });
  }
  return ['one', 'apart'].flatMap((layout) => drafts.filter((one) => one.layout === layout));
}

/** Faults happen one at a time, and none removes what another fault needs. */
function hasRoom({ strikes }: Draft, pair: Pair, iteration: number): boolean {
  const fragile = (one: Pair): boolean => one.when === 'saved' || one.when === 'replayed';
  return (
    strikes.length < perRun &&
    strikes.every((strike) => moment(strike.pair, strike.iteration) !== moment(pair, iteration)) &&
    !(fragile(pair) && strikes.some((strike) => fragile(strike.pair))) &&
    !strikes.some((strike) => endsWriter(strike, { pair, iteration }) || endsWriter({ pair, iteration }, strike))
  );
}

/** A checkpoint is written beside the next iteration: whoever ends the trainer there may come before its fault. */
const endsWriter = (one: Omit<Strike, 'nth'>, other: Omit<Strike, 'nth'>): boolean =>
  one.pair.when === 'saved' &&
  other.iteration === one.iteration + 1 &&
  !/^(?:control|nats|temporal|supervisor)/.test(other.pair.fault);

const moment = ({ when }: Pair, iteration: number): string =>
  when === 'open' || when === 'evaluated' || when === 'end' ? when : String(iteration);

/** The armed fault of a strike. */
export function armedFault(id: string, { pair, iteration, nth }: Strike, runId: string): ArmedFault {
  return {
    id,
    point: pair.point,
    facts: { ...factsOf(pair, iteration), ...ownRun(pair, runId) },
    nth,
    action: 'stand',
  };
}

function factsOf({ facts, counts }: Pair, iteration: number): FaultFacts {
  return counts === 'none' ? facts : { ...facts, iteration: counts === 'from position' ? iteration - 1 : iteration };
}

/** The engine's own points do not know the run; only one run exists at a time. */
function ownRun({ point }: Pair, runId: string): FaultFacts {
  return /^(decide|wait|publish|claim|job|result|ack)\./.test(point) ? { runId } : {};
}

/** A line for titles: it contains the seed and everything that follows from it. */
export function planTitle({ seed, subject, layout, strikes, engine }: Plan): string {
  const on = engine === undefined ? '' : `, ${engineTitle(engine, variantOf(engine, seed))}`;
  return `seed ${seed} (${subject}, ${layout}${on}): ${strikes.map((strike) => strikeTitle(strike)).join('; ')}`;
}

export const strikeTitle = ({ pair, iteration, nth }: Strike): string =>
  `${pairName(pair)} in iteration ${iteration}${nth > 1 ? `, visit ${nth}` : ''}`;
