/** Metrics read by chunks are those that the records say, whatever became of the chunks. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CountedObjects } from '../bench/log/counted-objects.ts';
import { generateLog } from '../bench/log/log-generator.ts';
import type { LogSize } from '../bench/log/log-generator.ts';
import { keys } from '../core/records/keys.ts';
import { termRecord } from '../core/records/schema.ts';
import type { TermRecord } from '../core/records/schema.ts';
import { digestOf } from '../log/objects/digest.ts';
import type { LogEnd } from '../log/run/lineage.ts';
import { writeChunks } from '../log/run/metric-chunks.ts';
import { metricRows, metricRowsFrom } from '../log/run/metric-rows.ts';
import type { MetricRow } from '../log/run/metric-rows.ts';
import { ColumnWriter } from '../workers/control/write-columns.ts';
import { encodeRecord, needRecord } from '../log/objects/records.ts';
import { RunLog } from '../log/run/run-log.ts';

const ordinary = { checkpointEvery: 1000, validationEvery: 10, state: 'running' } as const;

/** A log whose records have metrics of their own: names come and go, and some values are no numbers. */
function logOf(size: LogSize): { readonly log: RunLog; readonly store: CountedObjects } {
  const { runId, objects } = generateLog(size);
  for (const [key, bytes] of objects) {
    if (!/\/(?:batch|update|eval)\.json$/.test(key)) continue;
    const { check, ...record } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    if (check === undefined || record['metrics'] === undefined) continue;
    objects.set(key, encodeRecord({ ...record, ...measuredBy(key) }));
  }
  const store = new CountedObjects(objects);
  return { log: new RunLog(store, runId), store };
}

function measuredBy(key: string): Pick<MetricRow, 'metrics' | 'timings'> {
  const hash = Number.parseInt(digestOf(key).slice(0, 8), 16);
  const kind = key.slice(key.lastIndexOf('/') + 1, -'.json'.length);
  const values: MetricRow['metrics'] = { [`${kind}/value`]: hash / 7, both: hash % 5, 7: 1 };
  if (hash % 3 === 0) values[`${kind}/sometimes`] = hash % 2 === 0 ? 'NaN' : 0;
  return { metrics: values, timings: { 'timing_s/rollout': hash % 11, [`timing_s/${kind}`]: hash % 13 } };
}

/** The rows by records alone. */
async function rowsByRecords(log: RunLog): Promise<MetricRow[]> {
  const head = await log.head();
  if (head === undefined) return [];
  const withoutChunks = new RunLog(
    new CountedObjects(
      new Map([...(log.store as CountedObjects).objects].filter(([key]) => !key.includes('/columns/'))),
    ),
    log.runId,
  );
  return metricRowsFrom(0, head, withoutChunks);
}

/** The ends that the log had: that of each term before the next one was opened. */
async function endsOf(log: RunLog): Promise<LogEnd[]> {
  const ends: LogEnd[] = [];
  for (let term = 1; (await log.store.head(keys.term(log.runId, term))) !== undefined; term++) {
    const record: TermRecord = (await needRecord(log.store, keys.term(log.runId, term), termRecord)).record;
    const updates = [...(log.store as CountedObjects).objects.keys()].filter(
      (key) => key.startsWith(keys.positions(log.runId, term)) && key.endsWith('/update.json'),
    );
    // A term may end before its first update.
    const start = record.parent?.position ?? 0;
    ends.push({
      termRecord: record,
      position: Math.max(start, ...updates.map((key) => Number(key.split('/').at(-2)))),
    });
  }
  return ends;
}

async function writeAll(log: RunLog, end: LogEnd): Promise<void> {
  while (!(await writeChunks(log, end)).isComplete);
}

const damages = ['none', 'missing', 'flipped', 'cut', 'empty', 'other'] as const;

function damageChunk(objects: Map<string, Uint8Array>, key: string, damage: (typeof damages)[number]): void {
  const bytes = objects.get(key) ?? new Uint8Array();
  const others = [...objects.keys()].filter((one) => one.includes('/columns/') && one !== key);
  if (damage === 'missing') objects.delete(key);
  else if (damage === 'flipped')
    objects.set(
      key,
      bytes.map((byte, i) => (i === bytes.length >> 1 ? byte ^ 1 : byte)),
    );
  else if (damage === 'cut') objects.set(key, bytes.slice(0, bytes.length - 20));
  else if (damage === 'empty') objects.set(key, new Uint8Array());
  else if (damage === 'other') objects.set(key, objects.get(others[0] ?? key) ?? bytes);
}

describe('rows of metrics', () => {
  it('are those of the records, for logs of any terms and whatever became of their chunks', async () => {
    const shapes = fc.record({
      positions: fc.integer({ min: 1, max: 330 }),
      terms: fc.integer({ min: 1, max: 6 }),
      abandoned: fc.integer({ min: 0, max: 60 }),
      damage: fc.array(fc.constantFrom(...damages), { minLength: 1, maxLength: 8 }),
      from: fc.integer({ min: 0, max: 330 }),
      lost: fc.option(fc.integer({ min: 0, max: 42 }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(shapes, async ({ damage, from, lost, ...shape }) => {
        const { log, store } = logOf({ ...ordinary, ...shape });
        // A validation that came after its chunk, or never.
        const late = keys.evaluation(log.runId, 1, 10 * (lost ?? -1));
        const kept = store.objects.get(late);
        if (lost !== undefined) store.objects.delete(late);
        for (const end of await endsOf(log)) await writeAll(log, end);
        const chunks = [...store.objects.keys()].filter((key) => key.includes('/columns/'));
        chunks.forEach((key, i) => damageChunk(store.objects, key, damage[i % damage.length] ?? 'none'));
        if (kept !== undefined && damage.length % 2 === 0) store.objects.set(late, kept);
        const [expected, found] = [await rowsByRecords(log), await metricRows(new RunLog(store, log.runId))];
        expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
        const end = (await endsOf(log)).at(-1);
        const some = end && (await metricRowsFrom(from, end, new RunLog(store, log.runId)));
        expect(some).toEqual(expected.filter(({ iteration }) => iteration >= from));
      }),
      {
        numRuns: 10,
        // The newest term has no update yet.
        examples: [[{ positions: 1, terms: 2, abandoned: 0, damage: ['none'], from: 0, lost: undefined }]],
      },
    );
  });

  it('of a run that went back have the iterations of the new term', async () => {
    const { log, store } = logOf({ ...ordinary, positions: 400, terms: 2, abandoned: 150 });
    for (const end of await endsOf(log)) await writeAll(log, end);
    const names = (await store.children(keys.metricChunks(log.runId))).sort();
    expect(names).toEqual(['1-100-1.json', '1-100-2.json', '101-200-2.json', '201-300-2.json', '301-400-2.json']);
    expect(await metricRows(log)).toEqual(await rowsByRecords(log));
  });

  it('of a range whose last position waits for its validation get their chunk after it', async () => {
    const { log, store } = logOf({ ...ordinary, positions: 100, terms: 1 });
    const key = keys.evaluation(log.runId, 1, 100);
    const validation = store.objects.get(key) ?? new Uint8Array();
    store.objects.delete(key);
    const end = { position: 100, termRecord: (await endsOf(log))[0]?.termRecord as TermRecord };
    expect(await writeChunks(log, end)).toEqual({ written: [], isComplete: false });
    store.objects.set(key, validation);
    expect(await writeChunks(log, end)).toMatchObject({ isComplete: true });
    store.requests();
    expect(await metricRows(new RunLog(store, log.runId))).toHaveLength(101);
    expect(store.requests().filter((one) => /update|batch|eval/.test(one)).length).toBeLessThanOrEqual(2);
  });
});

describe('the control process', () => {
  it('writes a chunk once its last position is committed and validated, and asks nothing between ranges', async () => {
    const { log, store } = logOf({ ...ordinary, positions: 210, terms: 1 });
    const writer = new ColumnWriter(() => {});
    const requestsAt = async (position: number) => {
      store.requests();
      await writer.committed(log, position);
      return store.requests();
    };
    expect(await requestsAt(99)).toEqual([]);
    const created = (await requestsAt(200)).filter((one) => one.startsWith('create'));
    expect(created.map((one) => one.split('/').at(-1))).toEqual(['1-100-1.json', '101-200-1.json']);
    expect(await requestsAt(201)).toEqual([]);
    expect((await requestsAt(300)).filter((one) => one.startsWith('create'))).toEqual([]);
  });

  it('says once per range that it cannot write', async () => {
    const { log, store } = logOf({ ...ordinary, positions: 110, terms: 1 });
    store.create = () => Promise.reject(new Error('the disk is full'));
    const lines: string[] = [];
    const writer = new ColumnWriter((line) => lines.push(line));
    for (const position of [100, 101, 102]) await writer.committed(log, position);
    expect(lines).toEqual([`${log.runId}: its metrics are not in columns: the disk is full`]);
  });
});
