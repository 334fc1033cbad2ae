import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { cliHome } from '../../tests/cli.ts';
import { buildRun } from '../../tests/run-builder.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { writeMetricsFile } from './metrics-file.ts';

const home = cliHome();
afterAll(() => home.remove());

/** The log of the same run when it had this many iterations. */
const grownTo = async (done: number) => (await buildRun(new MemoryStore(), { done, iterations: 9 })).log;

it('a log that grows while the file is written loses no row', async () => {
  const path = join(home.home, 'metrics.jsonl');
  await writeMetricsFile(path, await grownTo(1));
  const log = await grownTo(4);
  vi.spyOn(log, 'head').mockResolvedValueOnce(await (await grownTo(3)).head());
  await writeMetricsFile(path, log);
  await writeMetricsFile(path, log);
  const steps = readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { step: number }).step);
  expect(steps).toEqual([1, 2, 3, 4]);
});
