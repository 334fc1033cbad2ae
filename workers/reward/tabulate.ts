/** The outcomes of a reward job as the table that it stores. */
import { at } from '../../core/at.ts';
import { mostText, type ScoreTable } from '../../core/wire/score-table.ts';
import type { ScoreOutcome } from '../../rewards/host/scorer-host.ts';
import type { ScoreColumns } from '../../rewards/types.ts';

type Value = ScoreColumns[string] | undefined;

/** `sources`: the data source of each sample. `drawOffsets`: where the samples of each draw begin. */
export function tabulate(
  outcomes: readonly ScoreOutcome[],
  sources: readonly string[],
  drawOffsets: Int32Array,
): Omit<ScoreTable, 'trajectories'> {
  const names = new Set(outcomes.flatMap((outcome) => (outcome.ok ? Object.keys(outcome.columns) : [])));
  const values = (name: string): Value[] => outcomes.map((one) => (one.ok ? one.columns[name] : undefined));
  const sorted = [...names].sort().map((name) => [name, values(name)] as const);
  const withTexts = sorted.filter(([, column]) => column.some((value) => typeof value === 'string'));
  const onlyTexts = new Set(withTexts.filter(([, column]) => column.every((value) => numberOf(value) === null)));
  const sizes = new Set(drawOffsets.subarray(1).map((end, g) => end - at(drawOffsets, g)));
  return {
    ...(sizes.size > 1 && { drawOffsets: [...drawOffsets] }),
    scores: outcomes.map((outcome) => (outcome.ok ? outcome.score : null)),
    reasons: outcomes.map((outcome) => (outcome.ok ? null : outcome.reason)),
    columns: columnsOf(
      sorted.filter((one) => !onlyTexts.has(one)),
      numberOf,
    ),
    ...(withTexts.length > 0 && { texts: columnsOf(withTexts, textOf) }),
    sources: indexed(sources),
  };
}

function columnsOf<T>(
  columns: readonly (readonly [string, readonly Value[]])[],
  of: (value: Value) => T,
): Record<string, T[]> {
  return Object.fromEntries(columns.map(([name, values]) => [name, values.map(of)]));
}

function numberOf(value: Value): number | null {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** Cut between code points, not inside one. */
function textOf(value: Value): string | null {
  if (typeof value !== 'string') return null;
  return value.length <= mostText ? value : [...value.slice(0, 2 * mostText)].slice(0, mostText).join('');
}

function indexed(sources: readonly string[]): NonNullable<ScoreTable['sources']> {
  const names = [...new Set(sources)];
  const index = new Map(names.map((name, i) => [name, i]));
  return { names, samples: sources.map((source) => index.get(source) ?? 0) };
}
