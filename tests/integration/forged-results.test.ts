// @module-tag long
/**
 * Results that a process wrote which had not claimed the job: a job's id follows from its input, so everybody can name
 * it.
 */
import { beforeAll, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { ResultRecord } from '../../core/records/schema.ts';
import { encodeRecord, needRecord } from '../../log/objects/records.ts';
import { claimSecret, proven } from '../../log/objects/result-proof.ts';
import { separatePools } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const recipe = { actor: { ppo_mini_batch_size: 2 }, trainer: { total_training_steps: 3, save_freq: 2 } };

const { loop, injector } = loopWithFaults();
let undisturbed: string[];

beforeAll(async () => {
  await loop.up(separatePools);
  undisturbed = await loop.states(await loop.completed(recipe));
});

/** The first result of the stage, of an earlier iteration. */
async function earlier({ runId }: StartedRun, stage: string): Promise<ResultRecord> {
  for (const name of await loop.store.children(keys.results(runId))) {
    const { record } = await needRecord(loop.store, keys.results(runId) + name, resultRecord);
    if (record.stage === stage) return record;
  }
  throw new Error(`no result of ${stage}`);
}

const guessed = (record: ResultRecord) =>
  proven(record, 'f'.repeat(12), claimSecret('0'.repeat(64), 'a', 'b', 'f'.repeat(12)));

it.each<readonly [string, string, (record: ResultRecord) => ResultRecord]>([
  ['rollout', 'without a claim', ({ claim: _, ...record }) => record],
  ['reward', 'with the claim of another job', (record) => record],
  ['advantage', 'with a proof that it made up', guessed],
  ['update', 'with the claim of another job', (record) => record],
  ['weights', 'with a proof that it made up', guessed],
])('a forged result of %s %s is found, and the job runs again (seed 42)', async (stage, _, forge) => {
  const run = await loop.create(recipe);
  const id = `forged-${run.runId}`;
  injector.arm({
    id,
    point: 'publish.before',
    process: 'control',
    facts: { stage, runId: run.runId, iteration: 2 },
    action: 'stand',
  });
  await loop.drive(run);
  const { facts, identity } = await injector.stands(id, AbortSignal.timeout(patienceMs));
  if (identity === undefined) throw new Error('the control process is gone');
  const jobId = String(facts['jobId']);
  const forged = { ...forge(await earlier(run, stage)), jobId };
  expect(await loop.store.create(keys.result(run.runId, jobId), encodeRecord(forged))).toBe('created');
  injector.thaw(identity);
  await loop.reaches(run, 'completed');
  expect(await loop.states(run)).toEqual(undisturbed);
  await loop.said(run, new RegExp(`${stage} is recomputed: .*which cannot prove that it claimed the job`));
});
