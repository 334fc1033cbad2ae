/** The number of requests for reading a run: a long run needs as many as a short one. */
import { beforeAll, describe, expect, it } from 'vitest';
import { passOver } from '../log/retention/pass.ts';
import { CountedObjects } from '../bench/log/counted-objects.ts';
import { generateLog } from '../bench/log/log-generator.ts';
import type { LogSize } from '../bench/log/log-generator.ts';
import { keys } from '../core/records/keys.ts';
import { writeChunks } from '../log/run/metric-chunks.ts';
import { metricRows } from '../log/run/metric-rows.ts';
import { RunLog } from '../log/run/run-log.ts';

const allowed = 10;
const shape = { checkpointEvery: 20, validationEvery: 10, state: 'running' } as const;
const short: LogSize = { ...shape, positions: 100, terms: 1 };
const long: LogSize = { ...shape, positions: 10_000, terms: 200 };

function openLog(size: LogSize) {
  const { runId, objects } = generateLog(size);
  const store = new CountedObjects(objects);
  return { log: new RunLog(store, runId), store };
}

type Opened = ReturnType<typeof openLog>;

async function costOf({ store }: Opened, look: () => Promise<unknown>): Promise<number> {
  store.requests();
  await look();
  return store.requests().length;
}

/** The requests of an attached `petrel run`, which it makes five times a second. */
async function watch({ log }: Opened): Promise<void> {
  await log.status.newest();
  const head = await log.head();
  if (head !== undefined) await log.evaluations.newest(head);
}

describe('a run of 10,000 positions and 200 terms', () => {
  let [a, b] = [openLog({ ...short, positions: 1 }), openLog({ ...short, positions: 1 })];
  beforeAll(() => {
    [a, b] = [openLog(short), openLog(long)];
  });

  it('has its end found with at most ten requests more than one of 100 and 1', async () => {
    const costs = [await costOf(a, () => a.log.head()), await costOf(b, () => b.log.head())] as const;
    expect(await b.log.head()).toMatchObject({ term: 200, position: 10_000 });
    expect(costs[1] - costs[0]).toBeLessThanOrEqual(allowed);
  });

  it('is looked at again with as few requests as a short one', async () => {
    await Promise.all([watch(a), watch(b)]);
    expect(await costOf(b, () => watch(b))).toBe(await costOf(a, () => watch(a)));
    expect(await costOf(b, () => watch(b))).toBeLessThanOrEqual(allowed);
  });

  it('has each of its validations found', async () => {
    const evaluations = await b.log.evaluations.all();
    expect(evaluations.map(({ iteration }) => iteration)).toEqual(Array.from({ length: 1001 }, (_, i) => 10 * i));
    const head = await b.log.head();
    expect(head && (await b.log.evaluations.newest(head))?.iteration).toBe(10_000);
    expect(head && (await b.log.evaluations.first(head))?.iteration).toBe(0);
  });

  it('is read alike where terms name only their parents, as 5ad3543 wrote them', async () => {
    const old = openLog({ ...long, lineage: false });
    expect(await old.log.head()).toMatchObject({ term: 200, position: 10_000 });
    expect((await old.log.chain()).map(({ record }) => record.term)).toEqual(
      (await b.log.chain()).map(({ record }) => record.term),
    );
    expect((await old.log.iteration(17)).update.record).toEqual((await b.log.iteration(17)).update.record);
    expect(await old.log.evaluations.all(9_000)).toEqual(await b.log.evaluations.all(9_000));
  });

  it('is read by a janitor only as far as it is new, ended or not', async () => {
    const options = { now: new Date('2026-02-03T04:05:06Z'), graceMs: 0 };
    for (const state of ['running', 'completed'] as const) {
      const runs = [short, long].map((size) => openLog({ ...size, state, keep: 2 })) as [Opened, Opened];
      const costs: number[] = [];
      for (const run of runs) {
        for (let pass = 0; pass < 3; pass++) expect((await passOver(run.log, options)).problem).toBeUndefined();
        costs.push(await costOf(run, () => passOver(new RunLog(run.log.store, run.log.runId), options)));
      }
      expect((costs[1] ?? 0) - (costs[0] ?? 0), state).toBeLessThanOrEqual(allowed);
    }
  });
});

describe('the metrics of 10,000 iterations of 200 terms', () => {
  it('are read with at most 20 requests, and with ten more for each large chunk that is missing', async () => {
    const { log, store } = openLog(long);
    const byRecords = await metricRows(log);
    const head = await log.head();
    while (head !== undefined && !(await writeChunks(log, head)).isComplete);
    const cost = () =>
      costOf({ log, store }, async () => expect(await metricRows(new RunLog(store, log.runId))).toEqual(byRecords));
    expect(await cost()).toBeLessThanOrEqual(20);
    await store.remove(keys.metricChunk(log.runId, { first: 7001, last: 8000 }, 200));
    expect(await cost()).toBeLessThanOrEqual(30);
  });
});

it('of more positions than a call takes arguments has an end', async () => {
  const { log, store } = openLog({ ...short, positions: 3 });
  for (let k = 0; k < 150_000; k++)
    store.objects.set(`runs/${log.runId}/terms/1/${k + 10}/note.json`, new Uint8Array());
  expect(await log.head()).toMatchObject({ position: 3 });
});
