/**
 * A million rows: how soon after `petrel run` a worker has the first job, with and without filtering of long prompts,
 * compared with the time that the tokenizer alone needs for the same prompts on one thread; also the memory and the
 * longest turns of each process.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { timeFirstJob } from '../dataset/first-job.ts';
import type { FirstJob } from '../dataset/first-job.ts';
import { writeRows } from '../dataset/million-rows.ts';
import { writeTinyRecipe } from '../dataset/tiny-recipe.ts';
import { timeTokenizer } from '../dataset/tokenizer-time.ts';
import type { Measurement, Session, Values } from '../measurement.ts';

const rowBytes = 600;
const processes = ['run', 'worker', 'control'] as const;
const filters = ['off', 'on'] as const;

const rowsOfFilter = (filter: (typeof filters)[number]) => [
  { name: `dataset.million.start.${filter}`, unit: 's' } as const,
  { name: `dataset.million.processor.${filter}`, unit: 's' } as const,
  ...processes.map((one) => ({ name: `dataset.million.memory.${filter}.${one}`, unit: 'bytes' }) as const),
  ...processes.map((one) => ({ name: `dataset.million.turn.${filter}.${one}`, unit: 'ms' }) as const),
];

export const millionRows: Measurement = {
  name: 'dataset.million',
  rows: [...filters.flatMap(rowsOfFilter), { name: 'dataset.million.tokenizer', unit: 's' }],
  turns: 1,
  compare: { 'dataset.million.start.on': 'dataset.million.tokenizer' },
  open: ({ quick }) => open(quick ? 2_000 : 1_000_000),
};

async function open(rows: number): Promise<Session> {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-bench-rows-'));
  const file = join(folder, 'rows.jsonl');
  await writeRows(file, rows, rowBytes);
  const recipe = await writeTinyRecipe(folder);
  return {
    about: `${rows} rows of ${rowBytes} bytes, a tenth of them longer; SmolLM2's tokenizer`,
    async turn(): Promise<Values> {
      const off = await timeFirstJob(recipe, []);
      const tokenizer = await timeTokenizer(file, join(folder, 'model'));
      const on = await timeFirstJob(recipe, ['data.filter_overlong_prompts=true', 'data.max_prompt_length=180']);
      return { ...valuesOf('off', off), ...valuesOf('on', on), 'dataset.million.tokenizer': tokenizer };
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The largest figures of each kind of process. */
function valuesOf(filter: (typeof filters)[number], { seconds, processes: found }: FirstJob): Values {
  const values = processes.flatMap((name) => {
    const own = found.filter((one) => one.name === name);
    return [
      [`dataset.million.memory.${filter}.${name}`, Math.max(...own.map(({ peakBytes }) => peakBytes))],
      [`dataset.million.turn.${filter}.${name}`, Math.max(...own.map(({ turns }) => turns[0]?.ms ?? 0))],
    ];
  });
  const processor = Math.max(...found.filter(({ name }) => name === 'run').map((one) => one.processorSeconds));
  return {
    [`dataset.million.start.${filter}`]: seconds,
    [`dataset.million.processor.${filter}`]: processor,
    ...(Object.fromEntries(values) as Values),
  };
}
