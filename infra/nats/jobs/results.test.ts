import { expect, it } from 'vitest';
import { recordFormat } from '../../../core/records/schema.ts';
import type { ResultRecord } from '../../../core/records/schema.ts';
import { identityText } from '../../../core/wire/worker-identity.ts';
import { encodeRecord } from '../../../log/objects/records.ts';
import { proven } from '../../../log/objects/result-proof.ts';
import { MemoryStore } from '../../../tests/memory-store.ts';
import { AskedJobs } from './asked-jobs.ts';
import { jobOf, messageOf } from './job.ts';
import type { JobRequest } from '../../../core/ports/jobs.ts';
import { Results } from './results.ts';

const store = new MemoryStore();
const claimant = { instance: 'here', worker: 'train-1', incarnation: 'one' };

function requestAt(iteration: number, generation = 0): JobRequest<'checkpoint'> {
  const input = { iteration, state: 'a'.repeat(64), generation } as unknown as JobRequest<'checkpoint'>['input'];
  return { stage: 'checkpoint', runId: 'toy', at: { term: 1, iteration }, store, profile: 'any', input };
}

it('a result that a worker tells is believed with the proof of a claim of this job, and only as it was written', async () => {
  const [job, other] = [jobOf(requestAt(1)), jobOf(requestAt(2))];
  const results = new Results('control-1');
  const result = await results.of(job);
  const record: ResultRecord = {
    ...{ format: recordFormat, jobId: job.jobId, stage: 'checkpoint', output: { manifest: 'm' }, timings: {} },
    writer: { process: 'train-1', at: '2026-01-02T03:04:05.000Z' },
  };
  const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const text = (secret: string) => textOf(encodeRecord(proven(record, identityText(claimant), secret)));
  const right = text(result.secretOf(claimant));
  expect(result.told(right)).toMatchObject({ jobId: job.jobId, output: { manifest: 'm' }, by: 'train-1' });
  for (const wrong of [
    text((await results.of(other)).secretOf(claimant)),
    right.replace('"m"', '"n"'),
    textOf(encodeRecord(record)),
    'not JSON',
    '',
  ])
    expect(result.told(wrong), wrong).toBe(undefined);
  expect((await results.of(other)).told(right)).toBe(undefined);
});

it('a worker is told that a job is new only in the first term: an abandoned one may have had the same job', () => {
  const isNew = (term: number) => messageOf(jobOf({ ...requestAt(1), at: { term, iteration: 1 }, isNew: true })).isNew;
  expect([isNew(1), isNew(2)]).toEqual([true, undefined]);
});

it('a job is new once, at the newest position of its run', () => {
  const asked = new AskedJobs();
  const ask = (iteration: number, generation = 0) => asked.note(jobOf(requestAt(iteration, generation)));
  expect([ask(1), ask(1), ask(1, 1), ask(1, 1)]).toEqual([true, false, true, false]);
  expect([ask(2), ask(2), ask(2, 1)]).toEqual([true, false, true]);
});
