/** The blob that a reward job stores: one entry per sample of the trajectories that it scored, in their order. */
import { z } from 'zod';
import { damage } from '../damage.ts';
import { digest } from '../records/schema.ts';

const column = z.array(z.number().nullable());

const scoreTable = z.object({
  /** Digest of the scored trajectories; it makes every table a different object. */
  trajectories: digest,
  scores: column,
  /** Why a score is null. */
  reasons: z.array(z.string().nullable()),
  /** Extra numeric columns that the scorer returned, including `acc` if given. */
  columns: z.record(z.string(), column),
});

export type ScoreTable = z.infer<typeof scoreTable>;

/** Throws PauseError `DamagedRecord` for what is no table, or one without an entry for each sample in each column. */
export function parseScoreTable(value: unknown, where: string): ScoreTable {
  const { success, data, error } = scoreTable.safeParse(value);
  if (!success) throw damage('DamagedRecord', where, `no table of scores: ${z.prettifyError(error)}`);
  for (const [name, values] of [['reasons', data.reasons] as const, ...Object.entries(data.columns)])
    if (values.length !== data.scores.length)
      throw damage('DamagedRecord', where, `${name}: expected ${data.scores.length} entries, found ${values.length}`);
  return data;
}
