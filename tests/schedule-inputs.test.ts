/** What a time of a schedule may start. tests/integration/schedules.test.ts tests all of it on real servers. */
import { expect, it } from 'vitest';
import { keys } from '../core/records/keys.ts';
import type { Store } from '../core/ports/store.ts';
import type { ScheduleDefinition } from '../core/records/schema.ts';
import { keepInputs, passOverInputs } from '../log/retention/inputs.ts';
import { sha256 } from '../log/objects/digest.ts';
import { claimRun, writeRun } from '../log/run/new-run.ts';
import { RunLog } from '../log/run/run-log.ts';
import { ScheduleLog } from '../log/schedules/schedule-log.ts';
import { appendStatus } from '../log/run/status.ts';
import { MemoryStore } from './memory-store.ts';
import type { ActivityPorts } from '../activities/ports/index.ts';
import { scheduleActivities } from '../activities/schedules.ts';

const day = 24 * 3_600_000;
const began = Date.parse('2026-01-01T00:00:00Z');
const inputs = { model: 'a'.repeat(64), train: 'b'.repeat(64), trainRows: 1 };
const definition = {
  times: { type: 'every', everyMs: day },
  since: '2026-01-01T00:00:00.000Z',
  catchUpMs: day,
  overlap: 'all',
  kind: 'rl',
  recipe: {},
  inputs,
} satisfies ScheduleDefinition;

function portsOf(log: ScheduleLog): ActivityPorts {
  const ports: Partial<ActivityPorts> = {
    stack: 'here',
    now: () => new Date(began),
    say: () => {},
    openStore: async () => log.store,
    openLog: (store, runId) => new RunLog(store, runId),
    appendStatus,
    whileHeartbeating: (work) => work(new AbortController().signal),
    schedules: {
      openScheduleLog: () => log,
      readModule: async () => new Uint8Array(),
      keepInputs,
      claimRun,
      writeRun,
      startRun: async () => {},
      tellRun: async () => false,
    },
  };
  return ports as ActivityPorts;
}

it('begins a run that was decided before its schedule went, and keeps the janitor from its model', async () => {
  const store = new MemoryStore();
  await store.put(keys.model(inputs.model, 'config.json'), new Uint8Array(1));
  const log = new ScheduleLog(store, 'nightly');
  const record = await log.append(undefined, { state: 'active', owner: 'here', definition }, new Date(began));
  const time = '2026-01-02T00:00:00.000Z';
  await log.appendFiring(0, {
    at: time,
    generation: 1,
    time,
    kind: 'scheduled',
    outcome: 'started',
    runId: 'nightly-20260102-000000-abcd',
  });
  await log.append(record, { state: 'removed', owner: 'here' }, new Date(began));
  const pass = (days: number) => passOverInputs(store, { now: new Date(began + days * day), graceMs: day });
  await pass(0);
  const { fireSchedule } = scheduleActivities(portsOf(log));
  const carry = { schedule: 'nightly', store: store.url, generation: 1, time };
  // The janitor is about to remove an input that a run has requested now, so it keeps it.
  const change = store.beforeChange;
  store.beforeChange = (key) => {
    if (key.endsWith('/revisions/1.json'))
      expect([...store.objects.keys()].filter((one) => one.startsWith('janitor/'))).toHaveLength(2);
    change(key);
  };
  expect(await fireSchedule(carry)).toMatchObject({ outcome: 'started' });
  expect(await pass(2)).toEqual({ removed: [], unnamed: [] });
  expect(await store.head(keys.model(inputs.model, 'config.json'))).toBe(1);
});

it('says that it failed when what its run would read is being removed', async () => {
  const store = new MemoryStore();
  const log = new ScheduleLog(store, 'nightly');
  await log.append(undefined, { state: 'active', owner: 'here', definition }, new Date(began));
  const ports = portsOf(log);
  const gone: ActivityPorts = { ...ports, schedules: { ...ports.schedules, keepInputs: async () => false } };
  const outcome = await scheduleActivities(gone).fireSchedule({
    schedule: 'nightly',
    store: store.url,
    generation: 1,
    time: '2026-01-02T00:00:00.000Z',
  });
  expect(outcome).toMatchObject({ outcome: 'failed', why: expect.stringContaining('were removed') as unknown });
  expect((await log.entries()).map((one) => one.outcome)).toEqual(['started', 'failed']);
});

it('gives a run the code of the user’s own that it kept: scorer, loss and estimator', async () => {
  const store = new MemoryStore();
  const code = new Map(['scorer', 'loss', 'estimator'].map((name) => [sha256(encode(name)), encode(name)]));
  const [scorer = '', loss = '', estimator = ''] = [...code.keys()];
  const own = { fileName: 'mine.ts', needs: [], deterministic: true };
  const named: ScheduleDefinition = {
    ...definition,
    inputs: {
      ...inputs,
      scorer: { type: 'module', module: scorer, fileName: 's.py', exportName: 'f', deterministic: true },
      loss: { module: loss, ...own },
      estimator: { module: estimator, ...own },
    },
  };
  const log = new ScheduleLog(store, 'nightly');
  await log.append(undefined, { state: 'active', owner: 'here', definition: named }, new Date(began));
  const ports = portsOf(log);
  const readModule = async (_: Store, __: string, digest: string) => code.get(digest) ?? encode('none');
  const { fireSchedule } = scheduleActivities({ ...ports, schedules: { ...ports.schedules, readModule } });
  const carry = { schedule: 'nightly', store: store.url, generation: 1, time: '2026-01-02T00:00:00.000Z' };
  const { runId = '' } = (await fireSchedule(carry)) as { readonly runId?: string };
  for (const [digest, bytes] of code) expect(await store.get(keys.blob(runId, digest))).toEqual(bytes);
});

const encode = (text: string) => new TextEncoder().encode(text);
