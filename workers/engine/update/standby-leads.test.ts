/** Checks a trainer that followed a run and says that it would lead with a state of its own. */
import { afterAll, describe, expect, it } from 'vitest';
import { keys } from '../../../core/records/keys.ts';
import { recordFormat } from '../../../core/records/schema.ts';
import { encodeRecord } from '../../../log/objects/records.ts';
import type { RunLog } from '../../../log/run/run-log.ts';
import { cliHome } from '../../../tests/cli.ts';
import { buildRun } from '../../../tests/run-builder.ts';
import { refuseToLead } from './standby-leads.ts';
import { namesOf } from '../state/state.ts';
import type { Applied, RunState } from '../state/state.ts';

const cli = cliHome();
afterAll(() => cli.remove());
let runs = 0;
const own = 'd'.repeat(64);
const ownBefore = 'e'.repeat(64);

async function logOf(pending: boolean): Promise<RunLog> {
  const { log } = await buildRun(await cli.store(), { name: `toy-${runs++}`, done: 3, checkpoints: [] });
  if (pending) await log.store.remove(keys.update(log.runId, 1, 3));
  log.forget();
  return log;
}

/** Writes the result of an update that names this state; its key. */
async function named(log: RunLog, jobId: string, stateDigest: string): Promise<string> {
  const writer = { process: 'train-2', at: '2026-02-03T04:05:06Z' };
  const record = { format: recordFormat, jobId, stage: 'update', output: { stateDigest }, timings: {}, writer };
  const key = keys.result(log.runId, jobId);
  await log.store.put(key, encodeRecord(record));
  return key;
}

/** A trainer that has applied the batch of iteration 3. */
async function trainer(log: RunLog, more: Partial<Applied>): Promise<RunState> {
  const batch = (await log.head())?.pending ?? (await log.iteration(3)).batch;
  const madeBy = { ...namesOf(batch), from: ownBefore, output: {}, ...more };
  return { tag: { stateDigest: own }, madeBy } as unknown as RunState;
}

const asked = async (state: RunState, log: RunLog, iteration: number): Promise<unknown> => {
  const target = (await log.at(iteration)).stateDigest;
  return refuseToLead(state, target, { runId: log.runId, at: { term: 1, iteration } }, log).catch((e: unknown) => e);
};

describe('a trainer that has applied the batches of a run', () => {
  it('names the result of its last update when it is asked for that position', async () => {
    const log = await logOf(false);
    const result = await named(log, 'update-3', own);
    const state = await trainer(log, { result });
    expect(await asked(state, log, 3)).toMatchObject({ code: 'StandbyLeads', where: result });
    expect(await asked(state, log, 2)).toBeUndefined();
  });

  it('names the one before when it has applied the batch that waits, too', async () => {
    const log = await logOf(true);
    const resultBefore = await named(log, 'update-2', ownBefore);
    const result = await named(log, 'update-3', own);
    const state = await trainer(log, { result, resultBefore });
    expect(await asked(state, log, 2)).toMatchObject({ code: 'StandbyLeads', where: resultBefore });
  });

  it.each([
    ['it has no result of its own', async () => ({})],
    ['its result is missing', async (log: RunLog) => ({ result: keys.result(log.runId, 'update-9') })],
    [
      'another trainer has written the result',
      async (log: RunLog) => ({ result: await named(log, 'update-3', ownBefore) }),
    ],
    [
      'the batch is another one',
      async (log: RunLog) => ({
        result: await named(log, 'update-3', own),
        original: 'f'.repeat(64),
        batch: 'f'.repeat(64),
      }),
    ],
  ] as const)('names none when %s', async (_, more) => {
    const log = await logOf(false);
    expect(await asked(await trainer(log, await more(log)), log, 3)).toBeUndefined();
  });

  it('names none when the state before the batch that waits is that of the log', async () => {
    const log = await logOf(true);
    const from = (await log.at(2)).stateDigest;
    const resultBefore = await named(log, 'update-2', from);
    expect(await asked(await trainer(log, { from, resultBefore }), log, 2)).toBeUndefined();
  });

  it('names none when its result is damaged', async () => {
    const log = await logOf(false);
    const result = await named(log, 'update-3', own);
    await log.store.put(result, new TextEncoder().encode('{"format":2'));
    expect(await asked(await trainer(log, { result }), log, 3)).toBeUndefined();
  });
});
