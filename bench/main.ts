/** `npm run bench`: one JSON object per row and line, and a table at the end. */
import { errorToJson, PetrelError } from '../core/errors.ts';
import { writeDocument } from './document.ts';
import { describeMachine } from './machine.ts';
import { measure } from './measure.ts';
import type { Measurement, RowResult } from './measurement.ts';
import { chooseRows, readOptions } from './options.ts';
import { MEASUREMENTS } from './registry.ts';
import { renderTable } from './table.ts';

async function main(words: readonly string[]): Promise<void> {
  const { json, only, python, settings, write } = readOptions(words, process.env);
  const results: RowResult[] = [];
  if (!json) console.error(`${describeMachine(settings)}${settings.quick ? '; tiny shapes, no measurement' : ''}`);
  for (const measurement of chooseRows(MEASUREMENTS, only)) {
    for (const row of await measureRows(measurement)) {
      results.push(row);
      console.log(JSON.stringify(row));
    }
    // After every measurement: a long bench that is cut off has not measured for nothing.
    if (write !== undefined)
      writeDocument(write, describeMachine(settings), `npm run bench -- ${words.join(' ')}`, renderTable(results));
  }
  if (!json) console.log(`\n${renderTable(results)}`);

  /** One that fails leaves the others alone, and the exit code tells. */
  async function measureRows(measurement: Measurement): Promise<RowResult[]> {
    return measure(measurement, settings, python).catch((error: unknown) => {
      console.error(`${measurement.name}: ${errorToJson(error).message}`);
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
