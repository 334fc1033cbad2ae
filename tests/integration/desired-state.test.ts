import { beforeAll, describe, expect, it } from 'vitest';
import { appendStatus } from '../../log/run/status.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const iterations = 8;
const recipe = { trainer: { total_training_steps: iterations } };

const { loop, injector } = loopWithFaults();
let undisturbed: string[];
beforeAll(async () => {
  await loop.up();
  const run = await loop.start(recipe);
  await loop.reaches(run, 'completed');
  undisturbed = await loop.states(run);
});

async function begun(): Promise<StartedRun> {
  const run = await loop.start(recipe);
  await loop.passes(run, 2);
  return run;
}

describe('a running run (seed 42)', () => {
  it('that is paused stops at a boundary, and continues to the same weights', async () => {
    const run = await begun();
    await loop.tell(run, 'pause');
    expect(await loop.reaches(run, 'paused')).toMatchObject({ wish: 'pause' });
    expect(await loop.client.workflow.getHandle(run.runId).query('live')).toMatchObject({
      state: 'paused',
      wish: 'pause',
    });
    const head = await run.log.head();
    expect(head?.pending).toBeUndefined();
    expect(head?.position).toBeLessThan(iterations);
    await loop.resume(run);
    expect((await loop.reaches(run, 'completed')).reason).toBeUndefined();
    expect(await loop.states(run)).toEqual(undisturbed);
  });

  it('that is stopped saves a checkpoint of its last update, and continues from it to the same weights', async () => {
    const run = await begun();
    const toldAt = new Date().toISOString();
    await loop.tell(run, 'stop');
    await loop.reaches(run, 'stopped');
    const head = await run.log.head();
    expect(await loop.ended(run)).toEqual({ state: 'stopped', position: head?.position });
    // A batch that was being committed when the stop came may wait for the resume, which applies it.
    expect(head?.pending === undefined || head.pending.record.writer.at >= toldAt).toBe(true);
    expect(head?.position).toBeLessThan(iterations);
    expect((await run.log.checkpoints.all()).map(({ record }) => record.stateDigest)).toEqual([head?.stateDigest]);
    await loop.resume(run);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });

  it('that is resumed while its pause is recorded continues, even when the signal is lost', async () => {
    const run = await loop.start(recipe);
    injector.arm({
      id: 'pausing',
      point: 'decide.before',
      facts: { kind: 'status', runId: run.runId, state: 'paused' },
      action: 'stand',
    });
    await loop.passes(run, 2);
    await loop.tell(run, 'pause');
    const { identity } = await injector.stands('pausing', AbortSignal.timeout(patienceMs));
    await appendStatus(run.log, { wish: 'run' }, new Date());
    expect(identity && injector.thaw(identity)).toBe(true);
    await loop.reaches(run, 'completed');
    expect(await loop.states(run)).toEqual(undisturbed);
  });

  it('that is stopped while it is paused ends at once', async () => {
    const run = await begun();
    await loop.tell(run, 'pause');
    await loop.reaches(run, 'paused');
    await loop.tell(run, 'stop');
    await loop.reaches(run, 'stopped');
    expect(await loop.ended(run)).toMatchObject({ state: 'stopped' });
  });

  it('that is cancelled keeps its log and saves no checkpoint', async () => {
    const run = await begun();
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
    expect(await loop.ended(run)).toMatchObject({ state: 'cancelled' });
    const states = await loop.states(run);
    expect(states.length).toBeLessThan(iterations);
    expect(states).toEqual(undisturbed.slice(0, states.length));
    expect(await run.log.checkpoints.all()).toEqual([]);
  });

  it('that is cancelled while responses grow frees their worker at once', async () => {
    // Long enough that the worker gets the cancel before the responses are complete, on any machine.
    const run = await loop.start({
      ...recipe,
      data: { max_response_length: 48 },
      actor: { ppo_max_token_len_per_gpu: 256 },
    });
    injector.arm({ id: 'growing', point: 'sample.token', facts: { runId: run.runId, position: 3 }, action: 'stand' });
    const { identity } = await injector.stands('growing', AbortSignal.timeout(patienceMs));
    await loop.tell(run, 'cancel');
    await loop.reaches(run, 'cancelled');
    expect(identity && injector.thaw(identity)).toBe(true);
    await loop.said(run, /^warn local-1: rollout .* (has ended|is paused or has ended)$/);
  });

  it('records its states in order', async () => {
    const run = await begun();
    await loop.tell(run, 'pause');
    await loop.reaches(run, 'paused');
    await loop.resume(run);
    await loop.reaches(run, 'completed');
    expect(await loop.statuses(run)).toEqual([
      'queued',
      'running',
      'running, pause',
      'paused, pause',
      'paused',
      'running',
      'completed',
    ]);
  });
});
