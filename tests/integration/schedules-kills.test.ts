// @module-tag long
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runIdPattern } from '../../core/ids.ts';
import { temporalScheduleId } from '../../infra/temporal/reconcile-schedule.ts';
import { readStack } from '../../infra/stack/index.ts';
import type { ScheduleLog } from '../../log/schedules/schedule-log.ts';
import { describeSchedule } from '../../infra/temporal/schedules.ts';
import { long, outcomes, rarely, SchedulesUnderTest, second, short } from '../schedules-under-test.ts';
import { patienceMs } from '../patience.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

const schedules = new SchedulesUnderTest();
const { loop, injector } = loopWithFaults({}, schedules.loop);
beforeAll(() => loop.up());

/** Resolves when a schedule that fires every two seconds has started one more run, and that run has ended. */
async function continues(log: ScheduleLog): Promise<void> {
  const from = new Date().toISOString();
  const run = await schedules.until(`a time of ${log.name} after ${from}`, async () =>
    (await log.view()).firings.find(({ time, outcome }) => time > from && outcome === 'started'),
  );
  await loop.reaches(schedules.runOf(run), 'completed');
}

async function everything(): Promise<void> {
  const names = ['supervisor', ...(readStack(loop.home)?.children ?? []).map(({ name }) => name)];
  await injector.kill(await Promise.all(names.map((name) => injector.victim(name))));
}

describe('a schedule that fires every two seconds continues by itself', () => {
  it('when the Temporal server, the control process or all of the stack is killed', async () => {
    const log = await schedules.add('clock', short, '--every', '2s');
    await continues(log);
    await injector.kill([await injector.victim('temporal')]);
    await continues(log);
    await injector.kill([await injector.victim('control')]);
    await continues(log);
    await everything();
    await loop.up();
    await continues(log);
    await schedules.petrel('schedule', 'rm', 'clock', '-y');
    const entries = await log.entries();
    const ids = entries.flatMap(({ runId }) => runId ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    expect((await schedules.runsNamed('clock')).sort()).toEqual([...ids].sort());
    expect(ids.every((id) => runIdPattern.test(id))).toBe(true);
  });
});

describe('when the control process dies at a time of the schedule', () => {
  it.each([
    [1, 'before it decides', { point: 'decide.before', facts: { kind: 'firing' } }],
    [2, 'when it has decided and the run does not exist', { point: 'decide.after', facts: { kind: 'firing' } }],
    [3, 'when the run is claimed and empty', { point: 'decide.after', facts: { kind: 'run' } }],
  ] as const)('(%i) %s, exactly one run is started', async (n, _when, place) => {
    const id = `control-${n}`;
    const name = `dies-${n}`;
    const log = await schedules.add(name, short, ...rarely);
    injector.arm({ id, process: 'control', action: 'kill', ...place });
    await schedules.send(log, second(n));
    expect(await injector.fired(id, AbortSignal.timeout(patienceMs))).toMatchObject({
      process: 'control',
      point: place.point,
    });
    const { runId } = await schedules.decided(log, second(n), 'started');
    await loop.reaches(schedules.runOf({ runId }), 'completed');
    expect(await schedules.runsNamed(name)).toEqual([runId]);
    expect(await outcomes(log)).toEqual([`${n} started`]);
  });
});

describe('when Temporal’s database is lost', () => {
  it('schedules come back in their desired state, with waiting times and pauses', async () => {
    const waits = await schedules.add('waits', long, ...rarely, '--overlap', 'buffer');
    const first = await schedules.startedBy(waits, second(1));
    await schedules.send(waits, second(2));
    await schedules.decided(waits, second(2), 'waiting');
    const paused = await schedules.add('held', short, '--cron', '0 3 * * *');
    await schedules.petrel('schedule', 'pause', 'held');
    const removed = await schedules.add('over', short, ...rarely);
    await schedules.petrel('schedule', 'rm', 'over', '-y');
    await injector.replaceState('temporal', undefined);

    const live = (log: ScheduleLog) => describeSchedule(loop.client, temporalScheduleId(log)).catch(() => undefined);
    await schedules.until(
      'the schedules in the new database',
      async () => (await live(waits)) !== undefined && (await live(paused)) !== undefined,
    );
    expect((await live(paused))?.paused).toBe(true);
    expect(await live(removed)).toBeUndefined();
    await loop.until(
      first,
      'a workflow that listens',
      async () =>
        (
          await loop.client.workflow
            .getHandle(first.runId)
            .describe()
            .catch(() => undefined)
        )?.status.name === 'RUNNING',
    );
    await schedules.end(first);
    const { runId } = await schedules.decided(waits, second(2), 'started');
    await schedules.end(schedules.runOf({ runId }));
    expect(await outcomes(waits)).toEqual(['1 started', '2 waiting', '2 started']);
  });

  it('and an older copy is restored, later desired states are kept', async () => {
    const older = join(loop.home, 'older');
    const changed = await schedules.add('changed', short, ...rarely);
    const gone = await schedules.add('gone', short, ...rarely);
    await injector.copyState('temporal', older);
    await schedules.add('changed', short, '--every', '3000d', '--replace');
    await schedules.petrel('schedule', 'pause', 'changed');
    await schedules.petrel('schedule', 'rm', 'gone', '-y');
    const run = await schedules.startedBy(changed, second(3));
    await loop.reaches(run, 'completed');
    await injector.replaceState('temporal', older);

    const asWanted = async () => {
      const { spec, state } = await loop.client.schedule.getHandle(temporalScheduleId(changed)).describe();
      return state.paused && spec.intervals?.[0]?.every === 3000 * 86_400_000;
    };
    await schedules.until('the newer definition', () => asWanted().catch(() => false));
    await schedules.until(
      'the removal',
      async () => (await describeSchedule(loop.client, temporalScheduleId(gone)).catch(() => ({}))) === undefined,
    );
    expect(await schedules.fire(changed, second(3))).toEqual({ outcome: 'started', runId: run.runId });
    expect((await run.log.status.newest())?.state).toBe('completed');
    expect(await schedules.runsNamed('changed')).toEqual([run.runId]);
  });
});
