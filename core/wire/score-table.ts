/** The blob that a reward job stores: one entry per sample of the trajectories that it scored, in their order. */
import { z } from 'zod';
import { at } from '../at.ts';
import { damage } from '../records/damage.ts';
import { PauseError } from '../errors.ts';
import { digest } from '../records/schema.ts';

const column = z.array(z.number().nullable());
const textColumn = z.array(z.string().nullable());

const scoreTable = z.object({
  /** Digest of the scored trajectories, or of the weights that compared pairs. */
  trajectories: digest,
  /**
   * Position of the weights of pairs. the position of these weights. It or the trajectories make every table a
   * different object.
   */
  position: z.int().nonnegative().optional(),
  /**
   * Where the samples of each draw begin, and where the last ones end. Absent: every draw has as many samples as the
   * recipe says, as in older tables.
   */
  drawOffsets: z.array(z.int().nonnegative()).optional(),
  scores: column,
  /** Why a score is null. */
  reasons: z.array(z.string().nullable()),
  /** Extra numeric columns that the scorer returned, including `acc` if given. */
  columns: z.record(z.string(), column),
  /** The table's columns of texts, such as `pred`, cut at `mostText` characters. Absent in older tables. */
  texts: z.record(z.string(), textColumn).optional(),
  /** Data sources, and of each sample the index of its own. Absent in older tables. */
  sources: z.object({ names: z.array(z.string()), samples: z.array(z.int().nonnegative()) }).optional(),
});

export type ScoreTable = z.infer<typeof scoreTable>;

/** Characters of a text column that a table keeps. */
export const mostText = 2_000;

/** Throws PauseError `DamagedRecord` for what is no table, or one without an entry for each sample in each column. */
export function parseScoreTable(value: unknown, where: string): ScoreTable {
  const { success, data, error } = scoreTable.safeParse(value);
  if (!success) throw damage('DamagedRecord', where, `no table of scores: ${z.prettifyError(error)}`);
  const lists: [string, readonly unknown[]][] = [
    ['reasons', data.reasons],
    ...Object.entries(data.columns),
    ...Object.entries(data.texts ?? {}),
    ...(data.sources ? [['sources', data.sources.samples] satisfies [string, readonly unknown[]]] : []),
  ];
  for (const [name, values] of lists)
    if (values.length !== data.scores.length)
      throw damage('DamagedRecord', where, `${name}: expected ${data.scores.length} entries, found ${values.length}`);
  const { drawOffsets = [0, data.scores.length] } = data;
  const rises = drawOffsets.every((offset, g) => g === 0 || offset >= at(drawOffsets, g - 1));
  if (drawOffsets[0] !== 0 || !rises || drawOffsets.at(-1) !== data.scores.length)
    throw damage('DamagedRecord', where, `drawOffsets: expected offsets from 0 to ${data.scores.length}`);
  return data;
}

/** The ranges [start, end) of the samples of each draw. `n`: samples of a draw where the table does not say. */
export function drawsIn(
  { scores, drawOffsets }: Pick<ScoreTable, 'scores' | 'drawOffsets'>,
  n: number,
): readonly (readonly [start: number, end: number])[] {
  if (drawOffsets !== undefined) return drawOffsets.slice(1).map((end, g) => [at(drawOffsets, g), end]);
  const draws = Math.ceil(scores.length / n);
  return Array.from({ length: draws }, (_, g) => [g * n, Math.min((g + 1) * n, scores.length)]);
}

/**
 * The numbers of one name: `score`, or a column. A scorer that returns a number alone has it as `acc`, too. null: the
 * sample has no score. Throws PauseError `MissingColumn` when the scorer does not return it. `repair`: what to do then.
 */
export function numbersNamed(
  { scores, columns }: ScoreTable,
  name: string,
  repair?: string,
): readonly (number | null)[] {
  if (name === 'score' || (name === 'acc' && Object.keys(columns).length === 0)) return scores;
  const column = Object.hasOwn(columns, name) ? (columns[name] ?? []) : [];
  const missing = scores.findIndex((score, b) => score !== null && (column[b] ?? null) === null);
  if (missing !== -1)
    throw new PauseError('MissingColumn', `the scorer returned no number "${name}" for sample ${missing}`, {
      hint: [
        `it returns ${['score', ...Object.keys(columns)].join(', ')}`,
        ...(repair === undefined ? [] : [repair]),
      ].join('; '),
    });
  return scores.map((score, b) => (score === null ? null : (column[b] ?? null)));
}
