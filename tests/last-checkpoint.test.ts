/** A store loses the last checkpoint of a run after a worker has written it. */
import { expect, it } from 'vitest';
import type { ActivityPorts } from '../activities/ports/index.ts';
import { Recompute } from '../activities/term/recompute.ts';
import { RunContexts } from '../activities/term/run-context.ts';
import { stageActivities } from '../activities/stages/index.ts';
import { keys } from '../core/records/keys.ts';
import type { JobRequest } from '../core/ports/jobs.ts';
import { jobIdOf } from '../infra/nats/jobs/dispatcher.ts';
import { RunLog } from '../log/run/run-log.ts';
import { MemoryStore } from './memory-store.ts';
import { buildRun, builtOwner } from './run-builder.ts';

/** `worker`: carries out a checkpoint job. */
async function endedRun(worker: (request: JobRequest<'checkpoint'>, restore: () => void) => void) {
  const store = new MemoryStore();
  const { runId, log } = await buildRun(store, { done: 4, checkpoints: [4] });
  const key = keys.checkpoint(runId, 4, (await log.at(4)).stateDigest);
  const manifest = store.objects.get(key) ?? new Uint8Array();
  const ports: Partial<ActivityPorts> = {
    stack: builtOwner,
    openStore: async () => store,
    openLog: (opened, id) => new RunLog(opened, id),
    drivesRun: async () => true,
    admitWork: async () => {},
    jobIdOf,
    say: () => {},
    live: () => {},
    whileHeartbeating: (work) => work(new AbortController().signal),
    dispatcher: {
      run: async (request) => {
        const checkpoint = request as unknown as JobRequest<'checkpoint'>;
        worker(checkpoint, () => store.objects.set(key, manifest));
        return { jobId: jobIdOf(request.stage, request.input), output: { manifest: key } as never, timings: {} };
      },
      settle: () => Promise.reject(new Error('no job of parts')),
      releaseLease: () => {},
      isWanted: () => false,
      untilWanted: async () => false,
      endTurn: () => {},
      servesWeights: () => false,
      announceWeights: () => {},
      cancelJobs: async () => {},
      runResumed: () => {},
    },
  };
  const all = ports as ActivityPorts;
  const { checkpoint } = stageActivities(all, new RunContexts(all), new Recompute(all));
  return { key, store, save: () => checkpoint({ runId, store: store.url }) };
}

it('is written again when its job is done and its manifest is gone', async () => {
  const asked: (number | undefined)[] = [];
  const { key, store, save } = await endedRun(({ input }, restore) => {
    asked.push(input.generation);
    if (input.generation !== undefined) restore();
  });
  expect(await save()).toEqual({ manifest: key });
  expect(asked).toEqual([undefined]);
  store.objects.delete(key);
  expect(await save()).toEqual({ manifest: key });
  expect(asked).toEqual([undefined, undefined, 1]);
});

it('does not end a run without it: the run pauses, and names the missing object', async () => {
  const { key, store, save } = await endedRun(() => {});
  store.objects.delete(key);
  await expect(save()).rejects.toMatchObject({ kind: 'pause', code: 'MissingRecord', where: key });
});
