import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../core/errors.ts';
import type { RawRow } from '../raw.ts';
import { jsonValue, rounded } from './plain-value.ts';
import { readParquet } from './read.ts';

const fixtures = join(import.meta.dirname, '../fixtures');
/**
 * 200 rows as pyarrow writes them, in one row group with pages of 16 values: every type that JSON can have a value of,
 * nulls, lists and structs in each other, maps.
 */
const nested = ['nested-pages-v1', 'nested-pages-v2'];

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petrel-parquet-'));
});
afterEach(async () => rm(folder, { recursive: true }));

describe('Parquet by pages', () => {
  it.each([...nested, 'verl-gzip', 'verl-snappy', 'verl-zstd'])(
    'reads from %s what the library reads that decodes whole row groups',
    async (name) => {
      const bytes = await readFile(join(fixtures, `${name}.parquet`));
      const file = new Uint8Array(bytes).buffer;
      const whole = (await parquetReadObjects({ file, compressors })).map(jsonValue);
      const rows = (await read(join(fixtures, `${name}.parquet`))).rows;
      expect(rows.map(({ exact }) => exact)).toEqual(whole);
      expect(rows.map(({ plain }) => plain)).toEqual(whole.map(rounded));
      expect(JSON.stringify(rows.map(({ plain }) => plain))).toBe(JSON.stringify(whole.map(rounded)));
      expect(rows.map(({ number }) => number)).toEqual(whole.map((_, i) => i + 1));
    },
  );

  it.each(nested)(
    'reads the rows of %s that lie before a damaged page, and names the row behind them',
    async (name) => {
      const bytes = await readFile(join(fixtures, `${name}.parquet`));
      const metadata = await parquetMetadataAsync(new Uint8Array(bytes).buffer);
      const texts = metadata.row_groups[0]?.columns[0]?.meta_data;
      const end = Number(
        (texts?.dictionary_page_offset ?? texts?.data_page_offset ?? 0n) + (texts?.total_compressed_size ?? 0n),
      );
      bytes.fill(0xff, end - 40, end);
      const path = join(folder, 'damaged.parquet');
      await writeFile(path, bytes);
      const { rows, error } = await read(path, 4096);
      expect(rows.length).toBeGreaterThan(100);
      expect(error).toBeInstanceOf(InvalidInputError);
      expect(error?.message).toMatch(new RegExp(`damaged.parquet, row ${rows.length + 1}: cannot be read: `));
    },
  );
});

async function read(path: string, batchBytes?: number): Promise<{ readonly rows: RawRow[]; readonly error?: Error }> {
  const rows: RawRow[] = [];
  try {
    for await (const row of readParquet(path, batchBytes)) rows.push(row);
  } catch (error) {
    return { rows, error: error as Error };
  }
  return { rows };
}
