import { expect, it } from 'vitest';
import { otherSubjects, plansOfOthers } from './coverage.ts';
import { faults, pairName, pairs } from './pairs.ts';
import { engineChoice, engineChoices } from './engine-choice.ts';
import { engineFaults } from './engine-faults.ts';
import { enginePairs } from './engine-pairs.ts';
import { planTitle, plansAlone, plansOf, plansOnEngine, seedsPerCycle } from './plan.ts';

it('a seed gives the same plan whatever is asked for beside it', () => {
  const all = plansOf(1, 90).map(planTitle);
  expect(plansOf(40, 3).map(planTitle)).toEqual(all.slice(39, 42));
});

it('every pair is named once in the list', () => {
  const names = pairs.map(pairName);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

it('the seeds of a cycle do each pair once, in another order each time', () => {
  const [first, second] = [plansOf(1, seedsPerCycle()), plansOf(1, 200)];
  expect(first.flatMap(({ strikes }) => strikes)).toHaveLength(pairs.length);
  const titles = second.map((plan) => planTitle(plan).replace(/^seed \d+ /, ''));
  expect(new Set(titles).size).toBeGreaterThan(190);
});

it('each run other than GRPO loses its trainer between two optimiser steps, with its roles apart', () => {
  const plans = plansOfOthers();
  expect(plans.map(({ subject }) => subject)).toEqual(otherSubjects);
  for (const { layout, strikes } of plans) {
    expect(layout).toBe('apart');
    expect(strikes.map(({ pair }) => pairName(pair))).toContain('trainer at update (write.step)');
    expect(strikes.length).toBeGreaterThan(1);
  }
});

it('no process that writes a checkpoint ends in the next iteration where the fault is in that checkpoint', () => {
  const endsTrainer = (fault: string) => !/^(?:control|nats|temporal|supervisor)/.test(fault);
  for (const plan of [...plansOf(1, 300), ...plansOfOthers()]) {
    const saved = plan.strikes.filter(({ pair }) => pair.when === 'saved').map(({ iteration }) => iteration + 1);
    const next = plan.strikes.filter(({ pair, iteration }) => saved.includes(iteration) && endsTrainer(pair.fault));
    expect(next, planTitle(plan)).toEqual([]);
  }
});

it('with --alone each run has one fault, each fault in turn', () => {
  const plans = plansAlone(1, 2 * Object.keys(faults).length);
  expect(plans.map(({ strikes }) => strikes.map(({ pair }) => pair.fault).join())).toEqual([
    ...Object.keys(faults),
    ...Object.keys(faults),
  ]);
  expect(plansAlone(7, 3).map(planTitle)).toEqual(plans.slice(6, 9).map(planTitle));
});

it.each(engineChoices)(
  'on %s a cycle of seeds does each pair once, and the same whatever is asked for beside it',
  (text) => {
    const choice = engineChoice(text);
    const plans = plansOnEngine(choice, 1, 60);
    expect(plansOnEngine(choice, 17, 4).map(planTitle)).toEqual(plans.slice(16, 20).map(planTitle));
    const names = enginePairs(choice).map(pairName);
    expect(new Set(names).size).toBe(names.length);
    const first = plans.flatMap(({ strikes }) => strikes.map(({ pair }) => pairName(pair))).slice(0, names.length);
    expect([...first].sort()).toEqual([...names].sort());
    const ofSampler = Object.entries(engineFaults).filter(([, { ranks }]) => ranks.of === 'sampler');
    const kinds = Object.keys(engineFaults).length - (choice.sampler === 'native' ? ofSampler.length : 0);
    expect(new Set(enginePairs(choice).flatMap(({ fault }) => (fault in engineFaults ? [fault] : []))).size).toBe(
      kinds,
    );
  },
);
