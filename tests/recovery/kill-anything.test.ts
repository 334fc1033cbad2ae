import { describe, expect, it } from 'vitest';
import { Bed } from './bed.ts';
import { pairName, pairs } from './pairs.ts';
import { plansOf, seedsPerCycle } from './plan.ts';
import { playSeeds } from './play.ts';

/** The seeds that cover the list once; `npm run test:recovery` runs other seeds. */
const plans = plansOf(1, seedsPerCycle());

describe('after any kill a deterministic run continues by itself to the same states and metrics', () => {
  const done = playSeeds(plans, () => new Bed());

  it('and the supervisor logs every death, except that of a scorer and that of everything', () => {
    const known = (blows: typeof done) => [...new Set(blows.map(({ strike }) => strike.pair.fault))].sort();
    expect(known(done.filter(({ noticedAfterS }) => noticedAfterS !== undefined))).toEqual(
      known(done).filter((fault) => fault !== 'scorer' && fault !== 'everything'),
    );
  });

  it('and these seeds covered every fault in every stage of the list', () => {
    const planned = new Set(plans.flatMap(({ strikes }) => strikes.map(({ pair }) => pairName(pair))));
    expect([...planned].sort()).toEqual([...new Set(pairs.map(pairName))].sort());
    expect(pairs.length).toBeGreaterThanOrEqual(40);
  });
});
