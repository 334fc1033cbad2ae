/** What many seeds gave, as a table: how often each fault was done in which stage, and how long it took to be back. */
import { faults } from './pairs.ts';
import type { SeedResult } from './seed.ts';
import type { Blow } from './strike.ts';

export interface FaultRow {
  readonly fault: string;
  readonly times: number;
  readonly stages: readonly string[];
  readonly wholeAfterS: { readonly median: number; readonly longest: number };
  readonly committedAfterS: { readonly median: number; readonly longest: number };
}

export function faultRows(results: readonly SeedResult[]): FaultRow[] {
  const blows = results.flatMap((result) => result.blows);
  return Object.keys(faults)
    .map((fault) => ({ fault, of: blows.filter(({ strike }) => strike.pair.fault === fault) }))
    .filter(({ of }) => of.length > 0)
    .map(({ fault, of }) => ({
      fault,
      times: of.length,
      stages: [...new Set(of.map(({ strike }) => strike.pair.stage))],
      wholeAfterS: spread(of, (blow) => blow.wholeAfterS),
      committedAfterS: spread(of, (blow) => blow.committedAfterS),
    }));
}

export function renderRows(rows: readonly FaultRow[]): string {
  const seconds = ({ median, longest }: FaultRow['wholeAfterS']): string => `${median.toFixed(2)} (${longest.toFixed(2)})`;
  const lines = rows.map(({ fault, times, stages, wholeAfterS, committedAfterS }) => `| ${fault} | ${times} | ${stages.join(', ')} | ${seconds(wholeAfterS)} | ${seconds(committedAfterS)} |`);
  return ['| fault | times | stages | stack whole after, s: median (longest) | next commit after, s |', '|---|---|---|---|---|', ...lines].join('\n');
}

function spread(blows: readonly Blow[], of: (blow: Blow) => number): { median: number; longest: number } {
  const sorted = blows.map(of).sort((a, b) => a - b);
  return { median: sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN, longest: sorted.at(-1) ?? Number.NaN };
}
