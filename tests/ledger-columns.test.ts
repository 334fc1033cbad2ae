/** The verifier against chunks of metrics that are right, missing, damaged or wrong. */
import { beforeEach, describe, expect, it } from 'vitest';
import { generateLog } from '../bench/log/log-generator.ts';
import { keys } from '../core/records/keys.ts';
import type { MetricChunk } from '../core/records/metric-columns.ts';
import { writeChunks } from '../log/run/metric-chunks.ts';
import { encodeRecord } from '../log/objects/records.ts';
import { RunLog } from '../log/run/run-log.ts';
import { MemoryStore } from './memory-store.ts';
import { checkColumns } from '../api/ledger/columns.ts';
import { Objects } from '../api/ledger/objects.ts';
import { readTerms } from '../api/ledger/terms.ts';
import type { LedgerFault } from '../api/ledger/verdict.ts';

const size = { positions: 240, terms: 3, checkpointEvery: 1000, validationEvery: 10, state: 'running' } as const;
let store = new MemoryStore();
let runId = '';
/** Chunks of the log: its iterations up to 78 are in terms 1 and 2, the others in term 3. */
const chunk = (first: number, term: number) => keys.metricChunk(runId, { first, last: first + 99 }, term);

beforeEach(async () => {
  const log = generateLog(size);
  store = new MemoryStore();
  for (const [key, bytes] of log.objects) store.objects.set(key, bytes);
  runId = log.runId;
  const end = await new RunLog(store, runId).head();
  if (end !== undefined) await writeChunks(new RunLog(store, runId), end);
});

async function faults(): Promise<readonly LedgerFault[]> {
  const objects = new Objects(store, runId);
  await checkColumns(objects, runId, (await readTerms(objects, runId)).all);
  return objects.faults.all;
}

function change(key: string, by: (chunk: Record<keyof MetricChunk, never>) => object): void {
  const { check: _, ...record } = JSON.parse(new TextDecoder().decode(store.objects.get(key)));
  store.objects.set(key, encodeRecord({ ...record, ...by(record) }));
}

describe('a chunk of metrics', () => {
  it('that says what the records say is no fault, and neither is one that is missing', async () => {
    expect([...store.objects.keys()].filter((key) => key.includes('/columns/'))).toEqual([chunk(1, 3), chunk(101, 3)]);
    expect(await faults()).toEqual([]);
    store.objects.delete(chunk(1, 3));
    expect(await faults()).toEqual([]);
  });

  it('that is damaged is found', async () => {
    store.objects.set(chunk(1, 3), new TextEncoder().encode('{"format":3}\n'));
    expect(await faults()).toMatchObject([{ key: chunk(1, 3) }]);
  });

  it('whose cells say something else is found, with the record and the name', async () => {
    change(chunk(101, 3), ({ batch }) => {
      const { metrics, timings } = batch as MetricChunk['batch'];
      return {
        batch: { timings, metrics: { ...metrics, 'critic/score/mean': Array.from({ length: 100 }, (_, i) => i / 20) } },
      };
    });
    const found = await faults();
    expect(found[0]).toEqual({
      key: chunk(101, 3),
      expected: `what ${keys.batch(runId, 3, 101)} says of critic/score/mean: 0.5`,
      found: '0',
    });
    expect(found).toHaveLength(99);
  });

  it('that lacks a name, a row, or has a validation that says something else, is found', async () => {
    change(chunk(1, 3), () => ({ update: { metrics: {}, timings: {} } }));
    expect((await faults())[0]?.expected).toMatch(/actor\/grad_norm: 1$/);
    change(chunk(1, 3), () => ({ last: 99 }));
    expect((await faults()).some(({ expected }) => expected === 'last 100')).toBe(true);
    change(chunk(101, 3), ({ validations }) => ({
      validations: { ...Object(validations), metrics: { more: Array(10).fill(1) } },
    }));
    expect((await faults()).some(({ expected }) => expected.includes('eval.json says of more: nothing'))).toBe(true);
  });

  it('of another run, of records that are not there, or in the place of another one is found', async () => {
    change(chunk(1, 3), () => ({ runId: 'other' }));
    expect(await faults()).toMatchObject([{ expected: `runId ${runId}` }]);
    store.objects.set(chunk(201, 3), store.objects.get(chunk(101, 3)) ?? new Uint8Array());
    expect((await faults()).filter(({ key }) => key === chunk(201, 3))).toHaveLength(2);
    change(chunk(201, 3), () => ({ first: 201, last: 300 }));
    expect((await faults()).some(({ key }) => key === keys.update(runId, 3, 300))).toBe(true);
  });

  it('of a range that petrel does not write ends no verification', async () => {
    const hostile = keys.metricChunk(runId, { first: 1, last: 1e15 }, 3);
    store.objects.set(hostile, store.objects.get(chunk(1, 3)) ?? new Uint8Array());
    change(hostile, () => ({ term: 3, last: 1e15 }));
    expect(await faults()).toEqual([]);
  });
});
