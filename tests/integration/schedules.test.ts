import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ScheduleSummary } from '../../api/schedules/summary.ts';
import { runIdPattern } from '../../core/ids.ts';
import { isoSeconds } from '../../core/schedules/decide.ts';
import { temporalScheduleId } from '../../infra/temporal/reconcile-schedule.ts';
import { changeSchedule, ScheduleLog } from '../../log/schedules/schedule-log.ts';
import { describeSchedule } from '../../infra/temporal/schedules.ts';
import { long, outcomes, rarely, SchedulesUnderTest, second, short } from '../schedules-under-test.ts';

const schedules = new SchedulesUnderTest();
const { loop } = schedules;
beforeAll(() => loop.up());
afterAll(() => loop.remove());

describe('a schedule', () => {
  it('starts runs by the clock, each with its own id, until it is removed', async () => {
    const log = await schedules.add('clock', short, '--every', '2s');
    const started = await schedules.until('two completed runs', async () => {
      const { firings } = await schedules.show('clock');
      const done = firings.filter(({ state }) => state === 'completed');
      return done.length >= 2 ? done : undefined;
    });
    const ids = started.map(({ runId }) => runId ?? '');
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => runIdPattern.test(id) && id.startsWith('clock-'))).toBe(true);
    expect(
      started.every(
        ({ seconds, iteration, time }) => (seconds ?? 0) > 0 && iteration === 1 && Date.parse(time) % 2000 === 0,
      ),
    ).toBe(true);
    const [listed] = (await schedules.petrel('schedule', 'ls', '--json')).json<ScheduleSummary[]>();
    expect(listed?.nextTimes.length).toBeGreaterThan(2);
    expect(listed).toMatchObject({ name: 'clock', state: 'active', overlap: 'skip', catchUpMs: 2_000, mine: true });

    await schedules.petrel('schedule', 'rm', 'clock', '-y');
    expect(await describeSchedule(loop.client, temporalScheduleId(log))).toBeUndefined();
    expect((await log.record())?.state).toBe('removed');
    expect(await schedules.fire(log, second(1), false)).toEqual({ outcome: 'dropped' });
    await expect(schedules.petrel('schedule', 'show', 'clock')).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringContaining('was removed'),
    });
    expect((await schedules.petrel('ls', '--json')).json<{ runId: string }[]>().map(({ runId }) => runId)).toEqual(
      expect.arrayContaining(ids),
    );
  });

  it('creates one run per time, however often it is fired', async () => {
    const log = await schedules.add('once', short, ...rarely, '--overlap', 'all');
    const answers = await Promise.all([1, 2, 3, 4].map(() => schedules.fire(log, second(5))));
    expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1);
    await loop.reaches(schedules.runOf(answers[0] ?? {}), 'completed');
    expect(await schedules.fire(log, second(5))).toEqual(answers[0]);
    expect(await outcomes(log)).toEqual(['5 started']);
    expect(await schedules.runsNamed('once')).toHaveLength(1);
  });

  it('copies its inputs when it is added; --replace uses changed files', async () => {
    const scorer = loop.scorer('first', 'return 1;');
    const custom = { reward: { custom_reward_function: { path: scorer, deterministic: true } } };
    const log = await schedules.add('frozen', { ...short, ...custom }, ...rarely);
    loop.scorer('first', 'throw new Error("changed");');
    const before = await schedules.startedBy(log, second(1));
    await loop.reaches(before, 'completed');
    expect(JSON.stringify((await before.log.revision()).recipe)).not.toContain(loop.home);
    await expect(
      schedules.petrel('schedule', 'add', loop.recipeFile('frozen', short), ...rarely),
    ).rejects.toMatchObject({ code: 'Conflict', hint: expect.stringContaining('--replace') });
    loop.scorer('first', 'return 0;');
    await schedules.add('frozen', { ...short, ...custom }, '--every', '3000d', '--replace');
    const after = await schedules.startedBy(log, second(1));
    expect(after.runId).not.toBe(before.runId);
    await loop.reaches(after, 'completed');
    expect((await after.log.revision()).inputs.scorer).not.toEqual((await before.log.revision()).inputs.scorer);
    expect((await schedules.show('frozen')).times).toEqual({ type: 'every', everyMs: 3000 * 86_400_000 });
  });

  it('shows its settings', async () => {
    await schedules.add(
      'options',
      short,
      '--cron',
      '0 3 * * mon',
      '--timezone',
      'Europe/Berlin',
      '--jitter',
      '5m',
      '--until',
      '2100-01-01',
      '--catch-up',
      '2h',
      '--overlap',
      'buffer',
    );
    const { out } = await schedules.petrel('schedule', 'show', 'options');
    for (const part of [
      'cron 0 3 * * mon (Europe/Berlin)',
      'up to 5m later',
      '2100-01-01 00:00:00Z',
      'up to 2h late',
      'buffer: start when it has ended',
    ])
      expect(out).toContain(part);
    const live = await describeSchedule(loop.client, temporalScheduleId(new ScheduleLog(loop.store, 'options')));
    expect((await schedules.show('options')).nextTimes).toEqual(
      live?.nextTimes.slice(0, 5).map((time) => time.toISOString()),
    );
  });

  it('that is paused starts only triggered runs', async () => {
    const log = await schedules.add('paused', short, ...rarely);
    await schedules.petrel('schedule', 'pause', 'paused', '--note', 'no disk');
    expect((await describeSchedule(loop.client, temporalScheduleId(log)))?.paused).toBe(true);
    expect(await schedules.show('paused')).toMatchObject({ state: 'paused', note: 'no disk', nextTimes: [] });
    expect(await schedules.fire(log, second(1), false)).toEqual({ outcome: 'dropped' });
    const { runId } = (await schedules.petrel('schedule', 'trigger', 'paused', '--json')).json<{ runId: string }>();
    await loop.reaches(schedules.runOf({ runId }), 'completed');
    await schedules.petrel('schedule', 'unpause', 'paused');
    expect((await describeSchedule(loop.client, temporalScheduleId(log)))?.paused).toBe(false);
    await loop.reaches(await schedules.startedBy(log, second(2)), 'completed');
  });

  it('of another stack is fired by that stack until this one takes it over', { tags: ['long'] }, async () => {
    const log = await schedules.add('moved', short, ...rarely);
    await changeSchedule(log, () => ({ state: 'active', owner: 'elsewhere-123456' }), new Date());
    await schedules.until(
      'no Temporal Schedule here',
      async () => (await describeSchedule(loop.client, temporalScheduleId(log))) === undefined,
    );
    expect((await schedules.petrel('schedule', 'show', 'moved')).out).toContain('elsewhere-123456, another stack');
    await expect(schedules.petrel('schedule', 'trigger', 'moved')).rejects.toMatchObject({
      code: 'Conflict',
      hint: expect.stringContaining('takes it over'),
    });
    expect(await schedules.fire(log, second(1))).toEqual({ outcome: 'dropped' });
    await schedules.petrel('schedule', 'unpause', 'moved');
    await loop.reaches(await schedules.startedBy(log, second(1)), 'completed');
  });
});

describe('when a run of the schedule has not ended', () => {
  it('skip: none is started, also when that run was stopped and resumed, or is paused', async () => {
    const log = await schedules.add('skip', long, ...rarely);
    const first = await schedules.startedBy(log, second(1));
    expect(await schedules.fire(log, second(2))).toMatchObject({
      outcome: 'skipped',
      why: `${first.runId} has not ended`,
    });
    await loop.passes(first, 1);
    await schedules.petrel('stop', first.runId);
    await loop.reaches(first, 'stopped');
    await schedules.petrel('resume', first.runId);
    await loop.reaches(first, 'running');
    expect(await schedules.fire(log, second(3))).toMatchObject({ outcome: 'skipped' });
    await schedules.petrel('pause', first.runId);
    await loop.reaches(first, 'paused');
    await expect(schedules.petrel('schedule', 'trigger', 'skip')).rejects.toMatchObject({
      code: 'Conflict',
      message: expect.stringContaining(first.runId),
    });
    expect(await schedules.show('skip')).toMatchObject({
      active: [{ runId: first.runId, state: 'paused' }],
      skipped: 3,
    });
    const { out } = await schedules.petrel('schedule', 'show', 'skip');
    expect(out).toMatch(new RegExp(`blocked by +${first.runId} \\(paused\\)`));
    expect((await schedules.show('skip')).firings[0]).toMatchObject({
      outcome: 'skipped',
      kind: 'triggered',
      by: [first.runId],
    });
    await schedules.end(first);
    await schedules.end(await schedules.startedBy(log, second(4)));
  });

  it('buffer: one waits for its end, others are skipped', async () => {
    const log = await schedules.add('buffer', long, ...rarely, '--overlap', 'buffer');
    const first = await schedules.startedBy(log, second(1));
    const waiting = schedules.fire(log, second(2));
    await schedules.until('one that waits', async () => (await outcomes(log)).includes('2 waiting'));
    expect(await schedules.fire(log, second(3))).toMatchObject({
      outcome: 'skipped',
      why: `the one of ${second(2)} waits already`,
    });
    await schedules.end(first);
    const { runId, outcome } = await waiting;
    expect([outcome, await outcomes(log)]).toEqual(['started', ['1 started', '2 waiting', '3 skipped', '2 started']]);
    await schedules.end(schedules.runOf({ runId }));
  });

  it('cancel: it is cancelled, and the newest takes its place', { tags: ['long'] }, async () => {
    const log = await schedules.add('cancel', long, ...rarely, '--overlap', 'cancel');
    const first = await schedules.startedBy(log, second(1));
    await loop.reaches(first, 'running');
    const second_ = await schedules.startedBy(log, second(2));
    expect((await first.log.status.newest())?.state).toBe('cancelled');
    await loop.reaches(second_, 'running');
    await schedules.petrel('pause', second_.runId);
    await loop.reaches(second_, 'paused');
    const third = await schedules.startedBy(log, second(3));
    expect((await second_.log.status.newest())?.state).toBe('cancelled');
    await schedules.end(third);
  });

  it('all: they run in parallel', { tags: ['long'] }, async () => {
    const log = await schedules.add('all', long, ...rarely, '--overlap', 'all');
    const runs = [await schedules.startedBy(log, second(1)), await schedules.startedBy(log, second(2))];
    expect((await schedules.show('all')).active.map(({ runId }) => runId)).toEqual(runs.map(({ runId }) => runId));
    for (const run of runs) await schedules.end(run);
  });

  it('a backfill starts its runs one after another in order of time, after regular times', {
    tags: ['long'],
  }, async () => {
    const log = await schedules.add(
      'past',
      long,
      '--every',
      '1d',
      '--overlap',
      'buffer',
      '--backfill',
      '2026-01-01..2026-01-03',
    );
    const first = await schedules.until('the first', async () =>
      (await log.view()).firings.find(({ outcome }) => outcome === 'started'),
    );
    await schedules.until(
      'two that wait',
      async () => (await log.view()).firings.filter(({ outcome }) => outcome === 'waiting').length === 2,
    );
    expect(first).toMatchObject({ time: '2026-01-01T00:00:00.000Z', kind: 'backfill' });
    expect((await schedules.show('past')).backfill).toMatchObject({ left: 2 });
    const triggered = schedules.fire(log, isoSeconds(new Date()));
    await schedules.until(
      'three that wait',
      async () => (await log.view()).firings.filter(({ outcome }) => outcome === 'waiting').length === 3,
    );
    await schedules.end(schedules.runOf(first));
    await schedules.end(schedules.runOf(await triggered));
    for (const day of ['02', '03']) {
      const next = await schedules.until(`the one of January ${day}`, async () =>
        (await log.view()).firings.find(({ time, runId }) => time.startsWith(`2026-01-${day}`) && runId !== undefined),
      );
      await schedules.end(schedules.runOf(next));
    }
    expect((await log.entries()).flatMap(({ outcome, kind }) => (outcome === 'started' ? kind : []))).toEqual([
      'backfill',
      'triggered',
      'backfill',
      'backfill',
    ]);
    expect((await schedules.show('past')).backfill).toMatchObject({ left: 0 });
  });
});
