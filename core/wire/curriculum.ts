/** The blob of a curriculum's state. Counters name it as the controller `curriculum`. */
import { z } from 'zod';
import { damage } from '../records/damage.ts';
import type { Counters } from '../records/schema.ts';
import type { CurriculumState } from '../rl/curriculum.ts';

const count = z.int().nonnegative();

const stored = z.object({
  /** The batch after which it holds. They make every state a different object. */
  iteration: count,
  parentState: z.string(),
  /** Row, mean and pass over the data, one after the other. */
  rows: z.array(z.tuple([count, z.number(), count])),
});

/** Digest of the state's blob; undefined before the first batch. */
export function curriculumBlob({ controllers }: Counters): string | undefined {
  const { curriculum } = controllers;
  return typeof curriculum === 'object' ? curriculum.blob : undefined;
}

export function encodeCurriculum(
  state: CurriculumState,
  { iteration, parentState }: { readonly iteration: number; readonly parentState: string },
): z.infer<typeof stored> {
  const rows = [...state].map(([row, { mean, epoch }]): [number, number, number] => [row, mean, epoch]);
  return { iteration, parentState, rows: rows.sort(([a], [b]) => a - b) };
}

/** Throws PauseError `DamagedRecord`. */
export function decodeCurriculum(value: unknown, where: string): CurriculumState {
  const { success, data, error } = stored.safeParse(value);
  if (!success) throw damage('DamagedRecord', where, `no state of a curriculum: ${z.prettifyError(error)}`);
  return new Map(data.rows.map(([row, mean, epoch]) => [row, { mean, epoch }]));
}
