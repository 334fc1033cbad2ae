/** `npm run bench`: one JSON object per row and line, and a table at the end. */
import { errorToJson, PetrelError } from '../core/errors.ts';
import { writeDocument } from './document.ts';
import { describeMachine } from './machine.ts';
import { measure } from './measure.ts';
import type { RowResult } from './measurement.ts';
import { chooseRows, readOptions } from './options.ts';
import { MEASUREMENTS } from './registry.ts';
import { renderTable } from './table.ts';

async function main(words: readonly string[]): Promise<void> {
  const { json, only, python, settings, write } = readOptions(words, process.env);
  const results: RowResult[] = [];
  if (!json) console.error(`${describeMachine(settings)}${settings.quick ? '; tiny shapes, no measurement' : ''}`);
  for (const measurement of chooseRows(MEASUREMENTS, only)) {
    for (const row of await measure(measurement, settings, python)) {
      results.push(row);
      console.log(JSON.stringify(row));
    }
  }
  if (!json) console.log(`\n${renderTable(results)}`);
  if (write !== undefined) writeDocument(write, describeMachine(settings), `npm run bench -- ${words.join(' ')}`, renderTable(results));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const { message, hint } = errorToJson(error);
  console.error(error instanceof PetrelError ? `bench: ${message}${hint === undefined ? '' : `\n${hint}`}` : error);
  process.exitCode = error instanceof PetrelError && error.code === 'InvalidInput' ? 2 : 1;
});
