/** Terms that the answers of trainers ask for, on a real store. */
import { afterAll, expect, it } from 'vitest';
import { TerminalError } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import { recordFormat } from '../core/records/schema.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import { checkpointPlace, otherReplayCode, standbyLeadsCode } from '../core/wire/trainer-answers.ts';
import { standbyStart } from '../log/run/standby-start.ts';
import { openNextTerm, sealTerm } from '../log/run/terms.ts';
import { claimKeyOf } from '../log/objects/claim-key.ts';
import { encodeRecord } from '../log/objects/records.ts';
import { claimSecret, proven } from '../log/objects/result-proof.ts';
import { RunLog } from '../log/run/run-log.ts';
import { builtOwner, buildRun } from './run-builder.ts';
import { cliHome } from './cli.ts';
import { completeTermOfTrainer, inTermOfTrainer } from '../activities/term/trainer-terms.ts';

const home = cliHome();
afterAll(() => home.remove());

const said: string[] = [];
const ports = {
  openNextTerm,
  standbyStart,
  stack: builtOwner,
  process: 'test',
  now: () => new Date('2026-02-03T04:05:06Z'),
  say: (_: string, __: string, text: string) => void said.push(text),
};
const writer = { process: 'test', at: '2026-02-03T04:05:06Z' };
let runs = 0;
const logOf = async () => {
  const { log } = await buildRun(await home.store(), { name: `toy-${runs++}`, done: 3, checkpoints: [1] });
  return log;
};
const otherReplay = (log: RunLog, checkpoint: number): Promise<never> =>
  Promise.reject(new TerminalError(otherReplayCode, 'other', { where: checkpointPlace(log.runId, checkpoint) }));

it('a replay that came out otherwise opens a term at the checkpoint that applies the later batches again', async () => {
  const log = await logOf();
  const stage = inTermOfTrainer(ports, async () => log, 3, otherReplay(log, 1));
  await expect(stage).rejects.toMatchObject({ code: 'OutOfDate' });
  expect((await log.newestTerm())?.record).toMatchObject({
    term: 2,
    parent: { term: 1, position: 1 },
    adopts: { term: 1, until: 3 },
    reason: 'replay',
  });
  expect((await log.head())?.position).toBe(1);
  expect(said.at(-1)).toContain('term 2 continues after iteration 1, and applies the batches up to iteration 3 again');
});

it('attempts at the same time that choose other checkpoints agree on one term', async () => {
  const log = await logOf();
  const attempts = [1, 0, 1].map((checkpoint) =>
    inTermOfTrainer(ports, async () => new RunLog(log.store, log.runId), 3, otherReplay(log, checkpoint)),
  );
  for (const attempt of await Promise.allSettled(attempts))
    expect(attempt).toMatchObject({ status: 'rejected', reason: { code: 'OutOfDate' } });
  const late = inTermOfTrainer(ports, async () => new RunLog(log.store, log.runId), 3, otherReplay(log, 0));
  await expect(late).rejects.toMatchObject({ code: 'OutOfDate' });
  expect((await new RunLog(log.store, log.runId).newestTerm())?.record.term).toBe(2);
});

it('an attempt that died after it had closed the term is completed', async () => {
  const log = await logOf();
  await sealTerm(log, { after: 1, owner: builtOwner, reason: 'replay', writer });
  const head = await log.head();
  if (head === undefined) throw new Error('the run has a term');
  expect(await completeTermOfTrainer(ports, log, head)).toBe(true);
  expect((await log.newestTerm())?.record).toMatchObject({ term: 2, parent: { position: 1 }, reason: 'replay' });
  expect(await completeTermOfTrainer(ports, log, (await log.head()) ?? head)).toBe(false);
});

it.each([
  ['another stack', 'other', 'replay'],
  ['a person', builtOwner, 'redo from iteration 2'],
])('a term that %s closed is left to it', async (_, owner, reason) => {
  const log = await logOf();
  await sealTerm(log, { after: 1, owner, reason, writer });
  const head = await log.head();
  if (head === undefined) throw new Error('the run has a term');
  expect(await completeTermOfTrainer(ports, log, head)).toBe(false);
  expect((await log.newestTerm())?.record.term).toBe(1);
});

/** The result of the update of iteration 3 by a standby. */
async function followedIn(log: RunLog, state: string, isProven = true): Promise<string> {
  const key = keys.result(log.runId, 'update-of-standby');
  const output = { stateDigest: state, components: { actor: { stateDigest: state, weightsDigest: state } } };
  const record: ResultRecord = {
    format: recordFormat,
    jobId: 'update-of-standby',
    stage: 'update',
    output,
    timings: {},
    writer,
  };
  const secret = claimSecret(await claimKeyOf(log.store, 'test'), log.runId, record.jobId, 'train-2');
  await log.store.put(key, encodeRecord(isProven ? proven(record, 'train-2', secret) : record));
  return key;
}

it('a standby that leads in other bits begins a term with its state, and a second attempt finds it', async () => {
  const log = await logOf();
  const state = 'd'.repeat(64);
  const where = await followedIn(log, state);
  const leads = () =>
    inTermOfTrainer(ports, async () => log, 3, Promise.reject(new TerminalError(standbyLeadsCode, 'other', { where })));
  await expect(leads()).rejects.toMatchObject({ code: 'OutOfDate' });
  const { record } = (await log.newestTerm()) ?? {};
  expect(record).toMatchObject({
    term: 2,
    parent: { term: 1, position: 3 },
    startState: state,
    standby: { result: 'update-of-standby' },
    reason: 'standby',
  });
  expect(record?.adopts).toBeUndefined();
  expect(await log.head()).toMatchObject({ position: 3, stateDigest: state });
  await expect(leads()).rejects.toMatchObject({ code: 'OutOfDate' });
  expect((await log.newestTerm())?.record.term).toBe(2);
});

it.each(['without its proof', 'missing'])(
  'a standby whose result is %s is passed over: the run goes back to its checkpoint',
  async (what) => {
    const log = await logOf();
    const key = await followedIn(log, 'd'.repeat(64), false);
    if (what === 'missing') await log.store.remove(key);
    const leads = new TerminalError(standbyLeadsCode, 'other', { where: key });
    await expect(inTermOfTrainer(ports, async () => log, 3, Promise.reject(leads))).rejects.toMatchObject({
      code: 'OutOfDate',
    });
    expect((await log.newestTerm())?.record).toMatchObject({ term: 2, parent: { position: 1 }, reason: 'replay' });
  },
);

it('an attempt that died after it had closed the term for a standby opens one that asks the standby again', async () => {
  const log = await logOf();
  const before = await log.head();
  await sealTerm(log, { after: 1, owner: builtOwner, reason: 'standby', writer });
  const head = await log.head();
  if (head === undefined) throw new Error('the run has a term');
  expect(await completeTermOfTrainer(ports, log, head)).toBe(true);
  expect(await log.head()).toMatchObject({ term: 2, position: 3, stateDigest: before?.stateDigest, seal: undefined });
});

it('other errors of a stage are passed on, and so is its result', async () => {
  const log = await logOf();
  const other = new TerminalError('Other', 'other', { where: checkpointPlace(log.runId, 1) });
  await expect(inTermOfTrainer(ports, async () => log, 3, Promise.reject(other))).rejects.toBe(other);
  expect(await inTermOfTrainer(ports, async () => log, 3, Promise.resolve(7))).toBe(7);
});
