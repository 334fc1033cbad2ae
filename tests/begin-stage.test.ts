/** Where a stage begins, and what its look finds, on the records of a run. */
import { afterAll, describe, expect, it } from 'vitest';
import type { ActivityPorts } from '../activities/index.ts';
import { beginStage, besideLook } from '../activities/stages/begin-stage.ts';
import { RunContexts } from '../activities/term/run-context.ts';
import { RetryableError } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import { batchDecision, updateDecision } from '../core/records/schema.ts';
import type { BatchRecord, UpdateRecord } from '../core/records/schema.ts';
import { needRecord } from '../log/objects/records.ts';
import type { Stored } from '../log/objects/records.ts';
import { RunLog } from '../log/run/run-log.ts';
import { openNextTerm } from '../log/run/terms.ts';
import { cliHome } from './cli.ts';
import { buildRun, builtOwner } from './run-builder.ts';

const home = cliHome();
afterAll(() => home.remove());
const store = await home.store();
const writer = { process: 'test', at: '2026-01-02T03:04:05.000Z' };
let runs = 0;

/** A run of two iterations, the last of which this process has committed, as far as its log knows. */
async function leftAtTwo() {
  const { log, runId } = await buildRun(store, { name: `stage-${runs++}`, done: 2 });
  const requests: string[] = [];
  const counting = new Proxy(log.store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        requests.push(`${String(name)} ${String(given[0])}`);
        return (value as (...values: unknown[]) => unknown).apply(target, given);
      };
    },
  });
  const own = new RunLog(counting, runId);
  const contexts = new RunContexts({
    ...{ process: 'test', now: () => new Date(), say: () => {}, stack: builtOwner },
    ...{ openStore: async () => counting, openLog: () => own },
    ...{ drivesRun: async () => true, admitWork: async () => {} },
    getJsonBlob: () => Promise.reject(new Error('the runs here have no curriculum')),
    openNextTerm: () => Promise.reject(new Error('no term is to be opened here')),
    standbyStart: () => Promise.reject(new Error('no standby leads')),
  });
  await contexts.head({ runId, store: store.url });
  const update = (await needRecord(store, keys.update(runId, 1, 2), updateDecision)) as Stored<UpdateRecord>;
  own.appended(update);
  requests.length = 0;
  return { own, runId, contexts, requests, ref: { runId, store: store.url, position: 2 } };
}

/** Another process goes on with the run. */
const overtake = (runId: string, owner: string) =>
  openNextTerm(new RunLog(store, runId), { after: 1, skipDraws: false, owner, reason: 'other', writer });

const services = {
  ports: {
    whileHeartbeating: <T>(work: (signal: AbortSignal) => Promise<T>) => work(new AbortController().signal),
  } as ActivityPorts,
};

/** Ends only when its signal is aborted. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

describe('a stage where this process has left the log', () => {
  it('begins without a request, and looks only for a newer term', async () => {
    const { contexts, requests, ref, runId } = await leftAtTwo();
    const stage = await beginStage(contexts, ref);
    expect(stage.head).toMatchObject({ position: 2, isOwn: true, pending: undefined });
    await stage.look;
    expect(requests.sort()).toEqual([1, 2].map((term) => `head ${keys.term(runId, term)}`));
  });

  it('has the batch that it has committed', async () => {
    const { contexts, own, ref, runId } = await leftAtTwo();
    const batch = (await needRecord(store, keys.batch(runId, 1, 2), batchDecision)) as Stored<BatchRecord>;
    own.appended(batch);
    const stage = await beginStage(contexts, { ...ref, position: 1 });
    expect(stage.head).toMatchObject({ position: 1, isOwn: true, pending: { digest: batch.digest } });
  });

  it('ends its work when another stack drives the run, with the error that names it', async () => {
    const { contexts, ref, runId } = await leftAtTwo();
    await overtake(runId, 'other');
    const stage = await beginStage(contexts, ref);
    const work = besideLook(services, stage, untilAborted);
    await expect(work).rejects.toMatchObject({ code: 'Fenced', message: expect.stringContaining('other') as string });
  });

  it('is out of date when this stack has opened a newer term', async () => {
    const { contexts, ref, runId } = await leftAtTwo();
    await overtake(runId, builtOwner);
    const stage = await beginStage(contexts, ref);
    await expect(besideLook(services, stage, async () => 'done')).rejects.toMatchObject({ code: 'OutOfDate' });
  });

  it('gives the error of its work while its look finds nothing', async () => {
    const { contexts, ref } = await leftAtTwo();
    const stage = await beginStage(contexts, ref);
    const failed = new RetryableError('Here', 'no');
    await expect(besideLook(services, stage, () => Promise.reject(failed))).rejects.toBe(failed);
  });
});

describe('a stage elsewhere', () => {
  it('looks first: after a failure, and when the workflow is at another position', async () => {
    const { contexts, own, ref } = await leftAtTwo();
    await expect(beginStage(contexts, { ...ref, position: 1 })).rejects.toMatchObject({ code: 'OutOfDate' });
    contexts.leave(ref);
    expect(await own.ownHead()).toBe(undefined);
    const { head } = await beginStage(contexts, ref);
    expect([head.position, head.isOwn]).toEqual([2, undefined]);
  });
});
