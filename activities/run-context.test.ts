import { afterAll, expect, it } from 'vitest';
import { buildRun } from '../tests/run-builder.ts';
import { cliHome } from '../tests/cli.ts';
import { RunContexts } from './run-context.ts';

const home = cliHome();
afterAll(() => home.remove());

it('the runs that were asked for last are kept at hand, those before them are read again', async () => {
  const store = await home.store();
  const { log } = await buildRun(store);
  let opened = 0;
  const contexts = new RunContexts({
    stack: 'test',
    openStore: () => Promise.resolve(store),
    admitWork: async () => {}, openLog: () => {
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
