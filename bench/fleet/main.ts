/**
 * `npm run fleet:model -- [--seed N] [--seeds N] [--json]`: the planner against a fixed size and greedy spot, on three
 * traces.
 */
import { parseArgs } from 'node:util';
import { fixed, greedy, planner } from './policies.ts';
import { play } from './model.ts';
import type { Outcome, Work } from './model.ts';
import { traces } from './traces.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '20' },
    json: { type: 'boolean', default: false },
  },
});

const spot = (zone: string, usdPerHour: number) => ({ zone, type: 'g6.xlarge', market: 'spot' as const, usdPerHour });
/** One-GPU machines; of spot a zone is dearer than another (prices of the order of EC2's in 2026). */
const work: Work = {
  iterations: 120,
  rolloutSeconds: 480,
  updateSeconds: 25,
  waitingUsdPerHour: 4,
  pool: {
    name: 'rollout',
    min: 0,
    max: 40,
    onDemandFloor: 0,
    places: [
      spot('a', 0.32),
      spot('b', 0.34),
      spot('c', 0.38),
      { zone: 'a', type: 'g6.xlarge', market: 'onDemand', usdPerHour: 0.8 },
    ],
    bootSeconds: 120,
    idleSeconds: 600,
  },
};
const policies = [planner, fixed(8), greedy];

const [first, count] = [Number(values.seed), Number(values.seeds)];
const seeds = Array.from({ length: count }, (_, i) => first + i);
const rows = traces.flatMap((trace) =>
  policies.map((policy) => mean(seeds.map((seed) => play(work, trace, policy, seed)))),
);
if (values.json) console.log(JSON.stringify(rows, null, 2));
else console.log(table(rows));

function mean(all: readonly Outcome[]): Omit<Outcome, 'paidSeconds' | 'usedSeconds'> {
  const of = (read: (one: Outcome) => number) => all.reduce((sum, one) => sum + read(one), 0) / all.length;
  return {
    policy: all[0]?.policy ?? '',
    trace: all[0]?.trace ?? '',
    hours: of(({ hours }) => hours),
    usd: of(({ usd }) => usd),
    totalUsd: of(({ totalUsd }) => totalUsd),
    losses: of(({ losses }) => losses),
    bought: of(({ bought }) => bought),
    useful: of(({ useful }) => useful),
  };
}

function table(all: readonly ReturnType<typeof mean>[]): string {
  const head =
    '| trace | policy | hours | workers | with waiting | losses | bought | useful |\n|---|---|---:|---:|---:|---:|---:|---:|';
  const lines = all.map(
    ({ trace, policy, hours, usd, totalUsd, losses, bought, useful }) =>
      `| ${trace} | ${policy} | ${hours.toFixed(2)} | $${usd.toFixed(2)} | $${totalUsd.toFixed(2)} | ${losses.toFixed(1)} | ${bought.toFixed(1)} | ${(100 * useful).toFixed(0)} % |`,
  );
  return [head, ...lines].join('\n');
}
