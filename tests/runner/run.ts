/**
 * What main.ts runs: tests, and then one line, `N passed, N failed` (and `, N skipped`). The exit code is 1 when a test
 * failed, when anything failed outside a test, or when nothing ran; 2 when the words are wrong.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createVitest } from 'vitest/node';
import type { Vitest } from 'vitest/node';
import { chosenFiles, isChosen, tagsFilter } from './choose.ts';
import { readDurations, withRun, writeDurations } from './durations.ts';
import type { FileDuration } from './durations.ts';
import { Lender } from './lender.ts';
import { runnerOptions } from './options.ts';
import type { RunnerOptions } from './options.ts';
import { countTests, durationLines, durationOf, lastLine } from './report.ts';

const options = optionsOrExit();
const lender = new Lender();
const vitest = await createVitest('test', {
  watch: false,
  reporters: ['default'],
  tagsFilter: tagsFilter(options.choice),
  ...(options.shard !== undefined && { shard: options.shard }),
});
await runTests(vitest, options);
const modules = vitest.state.getTestModules();
const count = countTests(modules, (test) => isChosen(test, options.choice), vitest.state.getUnhandledErrors().length);
const files = modules.map(durationOf);
await vitest.close();
await lender.end();

if (options.record) record(vitest.config.root, files);
if (count.passed + count.failed === 0) console.log('no test ran');
process.stdout.write(`\n${[...durationLines(files), '', lastLine(count)].join('\n')}\n`, () =>
  process.exit(count.failed > 0 || count.passed === 0 ? 1 : 0),
);

function optionsOrExit(): RunnerOptions {
  try {
    return runnerOptions(process.argv.slice(2));
  } catch (error) {
    console.error((error as Error).message);
    process.exit(2);
  }
}

async function runTests(on: Vitest, { filters, choice }: RunnerOptions): Promise<void> {
  await on.standalone();
  const files = chosenFiles(await on.globTestSpecifications([...filters]), choice);
  if (choice === 'quick') console.log('without the long tests, which npm run test:long runs');
  if (files.length > 0) await on.runTestSpecifications(files, true);
}

function record(root: string, ran: readonly FileDuration[]): void {
  const isThere = (path: string) => existsSync(join(root, path));
  writeDurations(root, withRun(readDurations(root), ran, isThere));
}
