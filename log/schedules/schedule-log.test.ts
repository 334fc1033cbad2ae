import { expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { RunLog } from '../run/run-log.ts';
import { ScheduleLog } from './schedule-log.ts';
import { appendStatus } from '../run/status.ts';

it('checks each run until it has started, and then no more', async () => {
  const store = new MemoryStore();
  const asked: string[] = [];
  const head = store.head.bind(store);
  store.head = (key) => {
    asked.push(key);
    return head(key);
  };
  const log = new ScheduleLog(store, 'nightly');
  const runs = ['begun', 'waits', 'deleted'];
  const begun = new RunLog(store, 'begun');
  await appendStatus(begun, { wish: 'run', state: 'completed' }, new Date());
  await store.create(keys.tombstone('deleted'), new Uint8Array(1));
  expect([...(await log.starting(runs))]).toEqual(['waits']);
  asked.length = 0;
  expect([...(await log.starting(runs))]).toEqual(['waits']);
  expect(asked.every((key) => key.startsWith(keys.all('waits')))).toBe(true);
});
