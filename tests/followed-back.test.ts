/** What a viewer shows of a run that goes back to an earlier iteration. */
import { afterAll, expect, it } from 'vitest';
import { followRun } from '../api/runs/follow.ts';
import { CountedObjects } from '../bench/log/counted-objects.ts';
import { generateLog } from '../bench/log/log-generator.ts';
import { keys } from '../core/records/keys.ts';
import { RunLog } from '../log/run/run-log.ts';
import { cliHome } from './cli.ts';

const cli = cliHome();
afterAll(() => cli.remove());

it('has the validation from before it, not that of an abandoned iteration', async () => {
  const size = { positions: 12, terms: 2, abandoned: 2, checkpointEvery: 20, validationEvery: 2 };
  const { runId, objects } = generateLog({ ...size, state: 'running' });
  const accuracyAt = (position: number): number =>
    JSON.parse(Buffer.from(objects.get(keys.evaluation(runId, 1, position)) ?? '').toString()).accuracy;
  const next = [...objects].filter(([key]) => key.includes('/terms/2/'));
  for (const [key] of next) objects.delete(key);
  const log = new RunLog(new CountedObjects(objects), runId);
  const leave = new AbortController();
  const shown: [number, number | undefined][] = [];
  await followRun(log, cli, {
    signal: leave.signal,
    onProgress: ({ iteration, accuracy }) => {
      if (shown.at(-1)?.[0] !== iteration) shown.push([iteration, accuracy]);
      for (const [key, bytes] of next) if (key.endsWith('/term.json') && iteration === 3) objects.set(key, bytes);
      if (shown.length > 1 && iteration === 1) leave.abort();
    },
  });
  expect(shown.filter(([iteration]) => iteration > 0)).toEqual([
    [3, accuracyAt(2)],
    [1, accuracyAt(0)],
  ]);
  expect(accuracyAt(2)).not.toBe(accuracyAt(0));
});
