/** `npm run bench`: one JSON object per row and line, and a table at the end. */
import { errorToJson, PetrelError } from '../core/errors.ts';
import { writeDocument } from './document.ts';
import { peakClass } from '../native/index.ts';
import { describeMachine } from './machine.ts';
import { measure } from './measure.ts';
import type { Measurement, RowResult } from './measurement.ts';
import { chooseRows, readOptions } from './options.ts';
import { MEASUREMENTS } from './registry.ts';
import { withShare } from './share.ts';
import { renderTable } from './table.ts';

async function main(words: readonly string[]): Promise<void> {
  const { json, only, peer, settings, write } = readOptions(words, process.env);
  const results: RowResult[] = [];
  const machine = describeMachine(settings, process.env);
  if (!json) console.error(`${machine}${settings.quick ? '; tiny shapes, no measurement' : ''}`);
  for (const measurement of chooseRows(MEASUREMENTS, only)) {
    for (const measured of await measureRows(measurement)) {
      const info = measurement.rows.find(({ name }) => name === measured.name);
      const row = withShare(measured, info?.limits?.(settings) ?? [], results);
      results.push(row);
      console.log(JSON.stringify(row));
    }
    // The table is written after every measurement, so that an interrupted bench keeps its results.
    if (write !== undefined) {
      const measured = { of: peakClass(settings.precision), machine, command: `npm run bench -- ${words.join(' ')}` };
      writeDocument(write, measured, renderTable(results));
    }
  }
  if (!json) console.log(`\n${renderTable(results)}`);

  /** A failed measurement does not stop the others; the exit code reports it. */
  async function measureRows(measurement: Measurement): Promise<RowResult[]> {
    return measure(measurement, settings, peer).catch((error: unknown) => {
      const { message, hint } = errorToJson(error);
      console.error(`${measurement.name}: ${message}${hint === undefined ? '' : `\n  hint: ${hint}`}`);
      process.exitCode = 1;
      return [];
    });
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const { message, hint } = errorToJson(error);
  console.error(error instanceof PetrelError ? `bench: ${message}${hint === undefined ? '' : `\n${hint}`}` : error);
  process.exitCode = error instanceof PetrelError && error.code === 'InvalidInput' ? 2 : 1;
});
