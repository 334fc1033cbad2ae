/**
 * 1.8 million chat rows, as DAPO-Math-17k is published: how long `petrel plan` takes, with its most memory, and how
 * soon a run has its first job; from Parquet with row groups of a million rows, and from the same rows as JSONL.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { timeFirstJob } from '../dataset/first-job.ts';
import { writeJsonl, writeParquet } from '../dataset/parquet-rows.ts';
import { timePlan } from '../dataset/plan-time.ts';
import { writeTinyRecipe } from '../dataset/tiny-recipe.ts';
import type { Measurement, Session, Values } from '../measurement.ts';

const formats = ['parquet', 'jsonl'] as const;

export const planRows: Measurement = {
  name: 'dataset.plan',
  rows: formats.flatMap((format) => [
    { name: `dataset.plan.${format}`, unit: 's' } as const,
    { name: `dataset.plan.${format}.memory`, unit: 'bytes' } as const,
    { name: `dataset.plan.${format}.start`, unit: 's' } as const,
  ]),
  turns: 1,
  open: ({ quick }) => open(quick ? 2_000 : 1_800_000),
};

async function open(rows: number): Promise<Session> {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-bench-plan-'));
  const files = { parquet: join(folder, 'rows.parquet'), jsonl: join(folder, 'rows.jsonl') };
  await writeParquet(files.parquet, rows);
  await writeJsonl(files.jsonl, rows);
  const recipe = await writeTinyRecipe(folder);
  return {
    about: `${rows} chat rows of 400 characters; SmolLM2's tokenizer`,
    async turn(): Promise<Values> {
      const values: Record<string, number> = {};
      for (const format of formats) {
        const words = [`data.train_files=${files[format]}`];
        const { seconds, peakBytes } = await timePlan(recipe, words);
        values[`dataset.plan.${format}`] = seconds;
        values[`dataset.plan.${format}.memory`] = peakBytes;
        values[`dataset.plan.${format}.start`] = (await timeFirstJob(recipe, words)).seconds;
      }
      return values;
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}
