// @module-tag long
import { describe, expect, it } from 'vitest';
import { Bed } from './bed.ts';
import { laterPlans, plansOfGrpo, plansOfOthers } from './coverage.ts';
import { pairName, pairs } from './pairs.ts';
import { playSeeds } from './play.ts';

describe('after any kill a deterministic run continues by itself to the same states and metrics', () => {
  const done = playSeeds(laterPlans(), () => new Bed());

  it('and the supervisor logs every death, except that of a scorer and that of everything', () => {
    const known = (blows: typeof done) => [...new Set(blows.map(({ strike }) => strike.pair.fault))].sort();
    expect(known(done.filter(({ noticedAfterS }) => noticedAfterS !== undefined))).toEqual(
      known(done).filter((fault) => fault !== 'scorer' && fault !== 'everything'),
    );
  });

  it('and these seeds and those of the other two files cover every fault in every stage of the list', () => {
    const planned = new Set(
      [...plansOfGrpo(), ...plansOfOthers()].flatMap(({ strikes }) => strikes.map(({ pair }) => pairName(pair))),
    );
    expect([...planned].sort()).toEqual([...new Set(pairs.map(pairName))].sort());
    expect(pairs.length).toBeGreaterThanOrEqual(40);
  });
});
