import { expect, it } from 'vitest';
import { damage } from '../../core/records/damage.ts';
import { keys } from '../../core/records/keys.ts';
import type { Stage, StageTypes } from '../../core/wire/jobs/index.ts';
import type { JobRequest, JobResult } from '../../core/ports/jobs.ts';
import { exampleProfile } from '../../core/records/examples.test-support.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { Recompute } from './recompute.ts';

const jobIdOf = (stage: Stage, input: { readonly generation?: number }) => `${stage}-${input.generation ?? 0}`;
const [runId, other] = ['toy-20260102-030405-abcd', 'toy-20260102-030405-abce'];

function request(of: string, store = new MemoryStore()): JobRequest<'checkpoint'> {
  return {
    stage: 'checkpoint',
    runId: of,
    at: { term: 1, iteration: 1 },
    store,
    profile: 'p',
    input: { iteration: 1, state: 's', model: 'm', profile: exampleProfile },
  };
}

/** Recomputes by this function; every other call of the dispatcher has no effect. */
const recomputeBy = (run: ActivityPorts['dispatcher']['run']) =>
  new Recompute({
    dispatcher: {
      run,
      settle: () => Promise.reject(new Error('not here')),
      releaseLease: () => {},
      isWanted: () => false,
      untilWanted: async () => false,
      endTurn: () => {},
      servesWeights: () => false,
      announceWeights: () => {},
      cancelJobs: async () => {},
      runResumed: () => {},
    },
    say: () => {},
    jobIdOf,
  });

/** A disk that damages every result until it is repaired. */
function onDyingDisk() {
  const disk = { dying: true, asked: [] as (number | undefined)[] };
  const run = async <S extends Stage>({ stage, runId: of, input }: JobRequest<S>): Promise<JobResult<S>> => {
    disk.asked.push(input.generation);
    const jobId = jobIdOf(stage, input);
    if (disk.dying) throw damage('DamagedRecord', keys.result(of, jobId), 'a bit has flipped');
    return { jobId, output: { manifest: 'm' } as StageTypes[S]['output'], timings: {} };
  };
  const recompute = recomputeBy(run);
  return {
    disk,
    again: (of: string) => recompute.run(request(of), { signal: new AbortController().signal }),
    recompute,
  };
}

it('gives up a result that is lost repeatedly, and tries the next generations after a resume', async () => {
  const { disk, again, recompute } = onDyingDisk();
  await expect(again(runId)).rejects.toMatchObject({ code: 'DamagedRecord' });
  await expect(again(runId)).rejects.toMatchObject({ code: 'DamagedRecord' });
  expect(disk.asked).toEqual([undefined, 1, 2, 2]);
  recompute.resetFailures(other);
  disk.asked = [];
  await expect(again(runId)).rejects.toMatchObject({ code: 'DamagedRecord' });
  expect(disk.asked).toEqual([2]);
  recompute.resetFailures(runId);
  disk.asked = [];
  await expect(again(runId)).rejects.toMatchObject({ code: 'DamagedRecord' });
  expect(disk.asked).toEqual([2, 3, 4]);
  recompute.resetFailures(runId);
  disk.dying = false;
  expect(await again(runId)).toMatchObject({ output: { manifest: 'm' } });
});

it('does not count damage from before this process asked: on a repaired disk it recomputes the next generation', async () => {
  const store = new MemoryStore();
  for (const generation of [0, 1, 2, 3])
    await store.create(keys.result(runId, jobIdOf('checkpoint', { generation })), new Uint8Array(1));
  const run = async <S extends Stage>({ stage, input }: JobRequest<S>): Promise<JobResult<S>> => {
    const jobId = jobIdOf(stage, input);
    if ((await store.head(keys.result(runId, jobId))) !== undefined)
      throw damage('DamagedRecord', keys.result(runId, jobId), 'a bit had flipped');
    return { jobId, output: { manifest: 'm' } as StageTypes[S]['output'], timings: {} };
  };
  const recompute = recomputeBy(run);
  expect(await recompute.run(request(runId, store), { signal: new AbortController().signal })).toMatchObject({
    jobId: 'checkpoint-4',
  });
});
