import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordFormat, resultRecord } from '../../core/records/schema.ts';
import type { ResultRecord } from '../../core/records/schema.ts';
import { encodeRecord } from './records.ts';
import { claimSecret, proven, requireProof } from './result-proof.ts';

const key = '5e'.repeat(32);
const runId = 'digits-1';
const jobId = 'reward-1';

const resultOf = (output: Record<string, unknown>, timings: Record<string, number> = {}): ResultRecord => ({
  format: recordFormat,
  jobId,
  stage: 'reward',
  output,
  timings,
  writer: { process: 'local-1', at: '2026-01-01T00:00:00.000Z' },
});

/** The record as the control process reads it. */
const stored = (record: ResultRecord): ResultRecord =>
  resultRecord.parse(JSON.parse(new TextDecoder().decode(encodeRecord(record))));

const secret = claimSecret(key, runId, jobId, 'a1');
const good = stored(proven(resultOf({ scores: 'd', failed: 0 }, { 'timing_s/reward': 0.25 }), 'a1', secret));
const claim = { incarnation: 'a1', proof: '', ...good.claim };

describe('the proof of a result (seed 42)', () => {
  it('is accepted as it was written, whatever the result is', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.string(),
        (output, seconds, incarnation) => {
          const own = claimSecret(key, runId, jobId, incarnation);
          const record = stored(proven(resultOf(output, { 'timing_s/reward': seconds }), incarnation, own));
          requireProof(key, runId, jobId, record);
        },
      ),
      { seed: 42 },
    );
  });

  it.each<readonly [string, ResultRecord]>([
    ['without a claim', { ...good, claim: undefined }],
    ['with another output', { ...good, output: { ...good.output, failed: 1 } }],
    ['with other timings', { ...good, timings: {} }],
    ['under another writer', { ...good, writer: { ...good.writer, process: 'local-2' } }],
    ['of another stage', { ...good, stage: 'rollout' }],
    ['with the proof of another process', { ...good, claim: { ...claim, incarnation: 'b2' } }],
    ['with a proof of another length', { ...good, claim: { ...claim, proof: '00' } }],
    ['with the secret of another process', proven(good, 'b2', secret)],
    ['with the secret of another job', proven(good, 'a1', claimSecret(key, runId, 'reward-2', 'a1'))],
    ['with the secret of another run', proven(good, 'a1', claimSecret(key, 'digits-2', jobId, 'a1'))],
    ['with the secret of another store', proven(good, 'a1', claimSecret('00'.repeat(32), runId, jobId, 'a1'))],
  ])('refuses a result %s', (_, record) => {
    expect(() => requireProof(key, runId, jobId, record)).toThrowError(
      expect.objectContaining({ code: 'DamagedRecord', where: `runs/${runId}/results/${jobId}.json` }),
    );
  });

  it('refuses a proven result in the place of another job', () => {
    expect(() => requireProof(key, runId, 'reward-2', good)).toThrowError(/cannot prove that it claimed the job/);
  });
});
