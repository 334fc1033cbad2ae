import { expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { RunLog } from './run-log.ts';
import { appendStatus } from './status.ts';

const at = new Date('2026-01-01T00:00:00Z');
const reason = { code: 'DiskFull', message: 'no room' };

async function runningLog(): Promise<RunLog> {
  const log = new RunLog(new MemoryStore(), 'toy-20260102-030405-abcd');
  await appendStatus(log, { wish: 'run', state: 'running' }, at);
  return log;
}

/** What the next attempt and the user do while the first attempt waits for the store. */
async function pausedAndResumed(log: RunLog): Promise<void> {
  await appendStatus(log, { state: 'paused', needsPerson: true, reason }, at);
  await appendStatus(log, { wish: 'run' }, at);
  await appendStatus(log, { state: 'running' }, at);
}

it('does not pause a resumed run when a timed-out writer gets its turn later', async () => {
  const log = await runningLog();
  const { store } = log;
  let givenUp = false;
  const create = store.create.bind(store);
  store.create = async (key, bytes) => {
    store.create = create;
    givenUp = true;
    await pausedAndResumed(log);
    return create(key, bytes);
  };
  await expect(
    appendStatus(log, { state: 'paused', needsPerson: true, reason }, at, () => givenUp),
  ).rejects.toMatchObject({
    code: 'GivenUp',
  });
  expect(await log.status.newest()).toMatchObject({ n: 4, wish: 'run', state: 'running' });
  // A writer that timed out before its first read writes nothing either.
  await expect(
    appendStatus(log, { state: 'paused', needsPerson: true, reason }, at, () => givenUp),
  ).rejects.toMatchObject({
    code: 'GivenUp',
  });
  expect(await store.head(keys.status(log.runId, 5))).toBeUndefined();
});

it('is recorded by a writer that others overtook, as long as it has not timed out', async () => {
  const log = await runningLog();
  const { store } = log;
  const create = store.create.bind(store);
  store.create = async (key, bytes) => {
    store.create = create;
    await appendStatus(log, { wish: 'stop' }, at);
    return create(key, bytes);
  };
  expect(await appendStatus(log, { state: 'paused', needsPerson: true, reason }, at)).toMatchObject({
    n: 3,
    wish: 'stop',
    state: 'paused',
  });
});

it('does not record an end that the user no longer wants', async () => {
  const log = await runningLog();
  await appendStatus(log, { wish: 'stop' }, at);
  await appendStatus(log, { wish: 'run' }, at);
  await expect(appendStatus(log, { state: 'stopped', onlyIf: 'stop' }, at)).rejects.toMatchObject({
    code: 'OutOfDate',
  });
  expect(await log.status.newest()).toMatchObject({ state: 'running', wish: 'run' });
  await appendStatus(log, { wish: 'stop' }, at);
  expect(await appendStatus(log, { state: 'stopped', onlyIf: 'stop' }, at)).toMatchObject({ state: 'stopped' });
});
