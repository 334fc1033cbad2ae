import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plan } from './plan.ts';
import { countsOf, restSeconds, samePlace, total } from './spread.ts';
import type { Demand, Instance, Place, Plan, PlanInput, Pool } from './types.ts';
import { iterationSeconds } from './worth.ts';

const place = (zone: string, more: Partial<Place> = {}): Place => ({
  zone,
  type: 'c7i.xlarge',
  market: 'spot',
  usdPerHour: 0.07,
  ...more,
});
const pool = (more: Partial<Pool> = {}): Pool => ({
  name: 'sample',
  min: 0,
  max: 12,
  onDemandFloor: 0,
  places: [place('a'), place('b'), place('c')],
  bootSeconds: 60,
  idleSeconds: 300,
  ...more,
});
const demand = (more: Partial<Demand> = {}): Demand => ({
  run: 'toy',
  pool: 'sample',
  rolloutSeconds: 300,
  otherSeconds: 20,
  waitingUsdPerHour: 1,
  priority: 1,
  ...more,
});
const input = (more: Partial<PlanInput> = {}): PlanInput => ({
  pools: [pool()],
  instances: [],
  demands: [demand()],
  refusals: [],
  ...more,
});

/** The fleet once the plan is carried out. */
function carriedOut({ pools, instances }: PlanInput, { decisions }: Plan): Instance[] {
  const kept = [...instances];
  for (const { pool: name, place: where, from, to } of decisions) {
    for (let n = from; n < to; n++)
      kept.push({
        id: `${name}-${kept.length}-${n}-${where.zone}${where.market}${where.type}`,
        pool: name,
        place: where,
        state: 'ready',
      });
    for (let n = from; n > to; n--)
      kept.splice(
        kept.findIndex((one) => one.pool === name && one.state !== 'draining' && samePlace(one.place, where)),
        1,
      );
  }
  expect(pools.length).toBeGreaterThan(0);
  return kept;
}
const countIn = (one: Pool, instances: readonly Instance[]) => total(countsOf(one, instances));
const sizeOf = (of: PlanInput) => {
  const after = carriedOut(of, plan(of));
  return of.pools.map((one) => countIn(one, after));
};

const places = fc
  .uniqueArray(
    fc.record({
      zone: fc.constantFrom('a', 'b', 'c'),
      type: fc.constantFrom('c7i.xlarge', 'm7i.xlarge'),
      market: fc.constantFrom('spot' as const, 'onDemand' as const),
    }),
    { minLength: 1, maxLength: 6, selector: ({ zone, type, market }) => `${zone} ${type} ${market}` },
  )
  .chain((all) =>
    fc
      .array(fc.double({ min: 0.01, max: 5, noNaN: true }), { minLength: all.length, maxLength: all.length })
      .map((prices) => all.map((one, i): Place => ({ ...one, usdPerHour: prices[i] ?? 1 }))),
  );
const pools = fc.record({
  bounds: fc.tuple(fc.nat(6), fc.nat(12)),
  onDemandFloor: fc.nat(3),
  places,
  bootSeconds: fc.integer({ min: 0, max: 600 }),
  idleSeconds: fc.integer({ min: 0, max: 600 }),
});
const anyInput: fc.Arbitrary<PlanInput> = fc
  .record({
    pools: fc.array(pools, { minLength: 1, maxLength: 2 }),
    demands: fc.array(
      fc.record({
        of: fc.nat(1),
        rolloutSeconds: fc.oneof(fc.constant(0), fc.double({ min: 1, max: 5_000, noNaN: true })),
        otherSeconds: fc.double({ min: 0, max: 600, noNaN: true }),
        own: fc.nat(4),
        waitingUsdPerHour: fc.double({ min: 0, max: 20, noNaN: true }),
        priority: fc.double({ min: 0.1, max: 10, noNaN: true }),
        budgetUsd: fc.option(fc.double({ min: 0, max: 100, noNaN: true }), { nil: undefined }),
        deadline: fc.option(
          fc.record({ secondsLeft: fc.integer({ min: 1, max: 100_000 }), iterationsLeft: fc.nat(200) }),
          { nil: undefined },
        ),
      }),
      { maxLength: 4 },
    ),
    have: fc.array(
      fc.tuple(fc.nat(1), fc.nat(5), fc.constantFrom('booting' as const, 'ready' as const, 'draining' as const)),
      {
        maxLength: 10,
      },
    ),
    refused: fc.array(
      fc.tuple(fc.nat(1), fc.nat(5), fc.constantFrom('capacity' as const, 'limit' as const), fc.nat(400)),
      {
        maxLength: 3,
      },
    ),
    maxUsdPerHour: fc.option(fc.double({ min: 0, max: 30, noNaN: true }), { nil: undefined }),
    idle: fc.option(fc.nat(1_000), { nil: undefined }),
    trainers: fc.option(fc.tuple(fc.nat(1), fc.integer({ min: 1, max: 14 })), { nil: undefined }),
  })
  .map(({ pools: some, demands, have, refused, maxUsdPerHour, idle, trainers }): PlanInput => {
    const all = some.map(
      ({ bounds: [a, b], ...rest }, i): Pool => ({ name: `p${i}`, min: Math.min(a, b), max: Math.max(a, b), ...rest }),
    );
    const poolAt = (i: number) => all[i % all.length] as Pool;
    const placeAt = (i: number, j: number) => poolAt(i).places[j % poolAt(i).places.length] as Place;
    return {
      pools: all,
      demands: demands.map(({ of, budgetUsd, deadline, ...rest }, i) => ({
        run: `r${i}`,
        pool: poolAt(of).name,
        ...rest,
        ...(budgetUsd !== undefined && { budgetUsd }),
        ...(deadline !== undefined && { deadline }),
      })),
      instances: have.map(([i, j, state], id) => ({ id: `i${id}`, pool: poolAt(i).name, place: placeAt(i, j), state })),
      refusals: refused.map(([i, j, kind, secondsAgo]) => ({ place: placeAt(i, j), kind, secondsAgo })),
      ...(maxUsdPerHour !== undefined && { maxUsdPerHour }),
      ...(trainers && { trainers: [{ pool: poolAt(trainers[0]).name, count: trainers[1], run: 'trained' }] }),
      ...(idle !== undefined && { idleFor: Object.fromEntries(all.map(({ name }) => [name, idle])) }),
    };
  });

describe('a plan, for any fleet', () => {
  it('never exceeds an upper bound or max_usd_per_hour', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const after = carriedOut(given, plan(given)).filter(({ state }) => state !== 'draining');
        for (const one of given.pools) expect(countIn(one, after)).toBeLessThanOrEqual(one.max);
        const price = after.reduce((sum, { place: { usdPerHour } }) => sum + usdPerHour, 0);
        expect(price).toBeLessThanOrEqual((given.maxUsdPerHour ?? Number.POSITIVE_INFINITY) * (1 + 1e-9));
      }),
    );
  });

  it('reaches lower bounds unless money, capacity or the account forbids it', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const { maxUsdPerHour: _, ...rest } = given;
        const free: PlanInput = { ...rest, refusals: [] };
        const after = carriedOut(free, plan(free));
        for (const one of free.pools) expect(countIn(one, after)).toBeGreaterThanOrEqual(one.min);
      }),
    );
  });

  it('has the trainers that runs need, within bounds, unless money, capacity or the account forbids it', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const { maxUsdPerHour: _, ...rest } = given;
        const free: PlanInput = { ...rest, refusals: [] };
        const after = carriedOut(free, plan(free));
        for (const { pool: name, count } of free.trainers ?? []) {
          const one = free.pools.find((pool) => pool.name === name) as Pool;
          expect(countIn(one, after)).toBeGreaterThanOrEqual(Math.min(one.max, count));
        }
      }),
    );
  });

  it('pauses a run whose budget does not pay for its trainer, and buys none', () => {
    const trainer = { run: 'trained', pool: 'sample', count: 1, iterationSeconds: 3600 };
    const of = (budgetUsd: number) => plan(input({ demands: [], trainers: [{ ...trainer, budgetUsd }] }));
    expect(of(0.2)).toMatchObject({ pauses: [], decisions: [{ to: 1 }] });
    for (const left of [0, 0.1]) {
      const { pauses, decisions } = of(left);
      expect(pauses).toMatchObject([{ run: 'trained', because: expect.stringContaining('iterations of its trainer') }]);
      expect(decisions).toEqual([]);
    }
  });

  it('is left alone once it is carried out', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const after = { ...given, instances: carriedOut(given, plan(given)) };
        expect(plan(after).decisions).toEqual([]);
      }),
    );
  });

  it('buys the cheaper place at once when the dearer one is given back for max_usd_per_hour', () => {
    const [cheap, dear] = [place('a', { usdPerHour: 0.1 }), place('b', { usdPerHour: 0.12 })];
    const given = input({
      pools: [pool({ min: 1, max: 1, places: [cheap, dear] })],
      demands: [],
      instances: [{ id: 'i0', pool: 'sample', place: dear, state: 'ready' }],
      maxUsdPerHour: 0.11,
    });
    expect(plan(given).decisions.map(({ place: { zone }, from, to }) => [zone, from, to])).toEqual([
      ['a', 0, 1],
      ['b', 1, 0],
    ]);
  });

  it('gives the same answer to the same question, and says why for every change', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const first = plan(given);
        expect(plan(structuredClone(given))).toEqual(first);
        for (const { because, from, to } of first.decisions) {
          expect(from).not.toBe(to);
          expect(because).toMatch(/^(buy|give back) \d+ .+: .{10,}$/);
        }
      }),
    );
  });

  it('has no fewer workers with more to do, money aside', () => {
    fc.assert(
      fc.property(anyInput, fc.nat(3), fc.double({ min: 1, max: 4, noNaN: true }), (given, which, factor) => {
        const { maxUsdPerHour: _, ...rest } = given;
        const demands = given.demands.map(({ budgetUsd: __, ...one }): Demand => one);
        const more = demands.map((one, i) =>
          i === which % demands.length ? { ...one, rolloutSeconds: one.rolloutSeconds * factor } : one,
        );
        const [before, after] = [sizeOf({ ...rest, demands }), sizeOf({ ...rest, demands: more })];
        before.forEach((size, i) => expect(after[i]).toBeGreaterThanOrEqual(size));
      }),
    );
  });

  it('buys nothing where there was no capacity in the last three minutes, and nothing at all at an account limit', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        for (const { place: where, from, to, pool: name } of plan(given).decisions) {
          if (to <= from) continue;
          const resting = given.refusals.filter((one) => samePlace(one.place, where) && one.secondsAgo < restSeconds);
          expect(resting.filter(({ kind }) => kind === 'capacity')).toEqual([]);
          const own = given.pools.find((one) => one.name === name)?.places ?? [];
          expect(given.refusals.some((one) => one.kind === 'limit' && own.some((at) => samePlace(at, one.place)))).toBe(
            false,
          );
        }
      }),
    );
  });

  it('divides instances of one price over zones to within one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 3 }), (count, zones) => {
        const one = pool({
          min: count,
          max: count,
          places: ['a', 'b', 'c'].slice(0, zones).map((zone) => place(zone)),
        });
        const counts = [...countsOf(one, carriedOut(input({ pools: [one] }), plan(input({ pools: [one] })))).values()];
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('a plan', () => {
  const became = (of: PlanInput) => sizeOf(of)[0];
  const have = (count: number): Instance[] =>
    Array.from({ length: count }, (_, i) => ({
      id: `i${i}`,
      pool: 'sample',
      place: place('abc'[i % 3] ?? 'a'),
      state: 'ready',
    }));

  it('buys workers while the next one pays', () => {
    const one = input({ demands: [demand({ rolloutSeconds: 120 })] });
    const size = became(one) ?? 0;
    expect(size).toBeGreaterThan(3);
    expect(plan(one).decisions[0]?.because).toBe(
      `buy ${plan(one).decisions[0]?.to} c7i.xlarge spot in a: toy waits ${Math.round(120 / size)} s of ${Math.round(120 / size + 20)} s of an iteration for rollouts; a worker saves more than it costs up to ${size}`,
    );
    expect(became(input({ demands: [demand({ otherSeconds: 3_000 })] }))).toBeLessThan(size);
    expect(became(input({ demands: [demand({ waitingUsdPerHour: 0 })] }))).toBe(1);
  });

  it('leaves a fleet as it is that is nearly of the size that pays best, and a longer boot makes that wider', () => {
    const one = demand({ waitingUsdPerHour: 5, otherSeconds: 200 });
    const kept = (bootSeconds: number) =>
      Array.from({ length: 13 }, (_, count) => count).filter(
        (count) => became(input({ pools: [pool({ bootSeconds })], demands: [one], instances: have(count) })) === count,
      );
    const best = became(input({ demands: [one] })) ?? 0;
    expect(kept(10)).toContain(best);
    expect(kept(900)).toEqual(expect.arrayContaining(kept(10)));
    expect(kept(900).length).toBeGreaterThan(kept(10).length);
    expect(kept(900).length).toBeLessThan(13);
  });

  it('waits for the idle time before it gives all back', () => {
    const idle = (seconds: number) =>
      became(input({ demands: [demand({ rolloutSeconds: 0 })], instances: have(3), idleFor: { sample: seconds } }));
    expect([idle(299), idle(300)]).toEqual([3, 0]);
  });

  it('has as many workers as a deadline needs, and says when it cannot be kept', () => {
    const due = (secondsLeft: number) =>
      input({ demands: [demand({ waitingUsdPerHour: 0, deadline: { secondsLeft, iterationsLeft: 10 } })] });
    expect(became(due(700))).toBe(6);
    expect(iterationSeconds(demand(), 6) * 10).toBeLessThanOrEqual(700);
    expect(plan(due(400)).notes).toEqual([
      'toy cannot keep its deadline: 10 iterations in 7 min need 15 workers, and sample has at most 12',
    ]);
    expect(plan(due(150)).notes[0]).toContain('need a faster trainer');
  });

  it('pauses a run whose budget does not pay for ending an iteration and draining, and gives its machines back', () => {
    const poor = plan(input({ demands: [demand({ budgetUsd: 0.01 })], instances: have(2) }));
    expect(poor.pauses).toEqual([
      { run: 'toy', because: expect.stringMatching(/^its budget has \$0.010 left, and 2 iterations at/) },
    ]);
    expect(poor.decisions.map(({ to }) => to)).toEqual([0, 0]);
  });

  it('keeps its floor on demand, in the market that is named', () => {
    const dear = place('a', { market: 'onDemand', usdPerHour: 0.2 });
    const one = pool({ onDemandFloor: 1, places: [dear, place('a'), place('b')] });
    const counts = countsOf(one, carriedOut(input({ pools: [one] }), plan(input({ pools: [one] }))));
    expect(total(counts, 'onDemand')).toBe(1);
    expect(total(counts, 'spot')).toBeGreaterThan(1);
  });

  it('divides workers among runs by what they are worth, times priority', () => {
    const two = (priority: number) =>
      input({ pools: [pool({ max: 6 })], demands: [demand(), demand({ run: 'other', priority })] });
    expect([became(two(1)), became(two(100))]).toEqual([6, 6]);
  });
});
