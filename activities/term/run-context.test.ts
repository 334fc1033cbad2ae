import { afterAll, expect, it } from 'vitest';
import { buildRun } from '../../tests/run-builder.ts';
import { keys } from '../../core/records/keys.ts';
import { cliHome } from '../../tests/cli.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { Recompute } from './recompute.ts';
import { recordState } from './record-state.ts';
import { RunContexts } from './run-context.ts';

const home = cliHome();
const noTerm = {
  process: 'test',
  now: () => new Date(),
  say: () => {},
  getJsonBlob: () => Promise.reject(new Error('the runs here have no curriculum')),
  openNextTerm: () => Promise.reject(new Error('no term is to be opened')),
  standbyStart: () => Promise.reject(new Error('no standby leads')),
};
afterAll(() => home.remove());

it('a run without any record is not started again: another folder is at the path of its store', async () => {
  const store = await home.store();
  const { log, runId } = await buildRun(store);
  await store.remove(keys.all(runId));
  const contexts = new RunContexts({
    ...noTerm,
    stack: 'test',
    openStore: () => Promise.resolve(store),
    drivesRun: async () => true,
    admitWork: async () => {},
    openLog: () => log,
  });
  const notThere = { kind: 'retryable', code: 'StoreGone', message: `${runId} is not in the store ${store.url}` };
  await expect(contexts.head({ runId, store: store.url })).rejects.toMatchObject(notThere);
  const ports = { stack: 'test', beginAttempt: () => () => false } as Partial<ActivityPorts> as ActivityPorts;
  const services = { ports, contexts, recompute: new Recompute(ports) };
  await expect(recordState(services, { runId, store: store.url, state: 'paused' })).rejects.toMatchObject(notThere);
  expect(await store.list(keys.all(runId))).toEqual([]);
});

it('the most recently used runs are cached, and older ones are read again', async () => {
  const store = await home.store();
  const { log } = await buildRun(store);
  let opened = 0;
  const contexts = new RunContexts({
    ...noTerm,
    stack: 'test',
    openStore: () => Promise.resolve(store),
    drivesRun: async () => true,
    admitWork: async () => {},
    openLog: () => {
      opened++;
      return log;
    },
  });
  const ask = (n: number) => contexts.of({ runId: `run-${n}`, store: store.url }, undefined);
  for (let n = 0; n < 32; n++) await ask(n);
  expect(opened).toBe(32);
  await ask(0);
  expect(opened).toBe(32);
  await ask(32);
  await ask(0);
  expect(opened).toBe(33);
  await ask(1);
  expect(opened).toBe(34);
});
