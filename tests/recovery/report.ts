/** A table of the results of many seeds: how often each fault happened in which stage, and its cost. */
import { median } from '../../bench/clock.ts';
import { allFaults } from './pairs.ts';
import type { Layout } from './pairs.ts';
import type { SeedResult } from './seed.ts';

interface Spread {
  readonly median: number;
  readonly longest: number;
}

export interface FaultRow {
  readonly fault: string;
  readonly times: number;
  readonly stages: readonly string[];
  /** Absent when no process of the stack could notice the fault. */
  readonly noticedAfterS?: Spread;
  readonly wholeAfterS: Spread;
  readonly committedAfterS: Spread;
  /** How much longer the runs with only this fault took than undisturbed ones. */
  readonly lostS?: Spread;
}

/** `undisturbed`: seconds of an undisturbed run, when each run had one fault. */
export function faultRows(
  results: readonly SeedResult[],
  undisturbed: ReadonlyMap<Layout, number> = new Map(),
): FaultRow[] {
  const done = results.flatMap(({ blows, runSeconds, plan }) =>
    blows.map((blow) => ({ ...blow, lostS: runSeconds - (undisturbed.get(plan.layout) ?? Number.NaN) })),
  );
  return Object.keys(allFaults)
    .map((fault) => ({ fault, of: done.filter(({ strike }) => strike.pair.fault === fault) }))
    .filter(({ of }) => of.length > 0)
    .map(({ fault, of }) => ({
      fault,
      times: of.length,
      stages: [...new Set(of.map(({ strike }) => strike.pair.stage))],
      ...optional(
        'noticedAfterS',
        of.flatMap(({ noticedAfterS }) => noticedAfterS ?? []),
      ),
      wholeAfterS: spread(of.map(({ wholeAfterS }) => wholeAfterS)),
      committedAfterS: spread(of.map(({ committedAfterS }) => committedAfterS)),
      ...optional('lostS', of.map(({ lostS }) => lostS).filter(Number.isFinite)),
    }));
}

export function renderRows(rows: readonly FaultRow[]): string {
  const withLost = rows.some(({ lostS }) => lostS !== undefined);
  const head = [
    'fault',
    'times',
    'stages',
    'noticed after, s: median (longest)',
    'stack whole after, s',
    'next commit after, s',
    ...(withLost ? ['run longer by, s'] : []),
  ];
  const lines = rows.map(({ fault, times, stages, noticedAfterS, wholeAfterS, committedAfterS, lostS }) => [
    fault,
    String(times),
    stages.join(', '),
    seconds(noticedAfterS),
    seconds(wholeAfterS),
    seconds(committedAfterS),
    ...(withLost ? [seconds(lostS)] : []),
  ]);
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** One line about the duration of the seeds. */
export function renderSeeds(results: readonly SeedResult[]): string {
  const { median: middle, longest } = spread(results.map((result) => result.seconds));
  return `${results.flatMap(({ blows }) => blows).length} faults; a seed took ${middle.toFixed(1)} s (median), ${longest.toFixed(1)} s at most`;
}

const seconds = (of: Spread | undefined): string =>
  of === undefined ? '–' : `${of.median.toFixed(2)} (${of.longest.toFixed(2)})`;

function optional<Name extends string>(name: Name, values: readonly number[]): { readonly [name in Name]?: Spread } {
  return values.length === 0 ? {} : ({ [name]: spread(values) } as { readonly [name in Name]: Spread });
}

const spread = (values: readonly number[]): Spread => ({ median: median(values), longest: Math.max(...values) });
