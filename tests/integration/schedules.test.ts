import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ScheduleSummary } from '../../cli/schedules/summary.ts';
import { runIdPattern } from '../../core/ids.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import type { FiringRecord } from '../../core/records/schema.ts';
import { isoSeconds } from '../../core/schedules/decide.ts';
import type { FiringOutcome } from '../../core/wire/workflow.ts';
import { startFiring, temporalScheduleId } from '../../infra/schedules/tend.ts';
import { RunLog } from '../../infra/store/run-log.ts';
import { changeSchedule, ScheduleLog } from '../../infra/store/schedule-log.ts';
import { actionWorkflowId, describeSchedule } from '../../infra/temporal/schedules.ts';
import { poll } from '../../infra/wait.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest, patienceMs } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

/** Over in a moment. */
const short: Tree = { trainer: { total_training_steps: 1 } };
/** Goes on until somebody ends it. */
const long: Tree = { trainer: { total_training_steps: 100_000 } };

const petrel = (...words: string[]) => runWords(loop.home, words);

async function add(name: string, recipe: Tree, ...options: string[]): Promise<ScheduleLog> {
  await petrel('schedule', 'add', loop.recipeFile(name, recipe), ...options);
  return new ScheduleLog(loop.store, name);
}

async function show(name: string): Promise<ScheduleSummary> {
  return (await petrel('schedule', 'show', name, '--json')).json();
}

async function until<T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
  const answer = await poll(probe, { everyMs: 50, timeoutMs: patienceMs });
  if (answer === undefined || answer === false) throw new Error(`it did not come to ${what}`);
  return answer;
}

/** A time of the schedule, told by whoever: its workflow's answer. */
async function fire(log: ScheduleLog, time: string, triggered = true): Promise<FiringOutcome> {
  const generation = (await log.record())?.generation ?? 0;
  await startFiring(loop.client, log, { generation, time, triggered });
  return loop.client.workflow.getHandle(actionWorkflowId(`${temporalScheduleId(log)}-g${generation}`, new Date(time))).result() as Promise<FiringOutcome>;
}

const second = (n: number) => isoSeconds(new Date(Date.UTC(2026, 0, 1, 0, 0, n)));

const runOf = ({ runId = '' }: Pick<FiringRecord, 'runId'>): StartedRun => ({ runId, log: new RunLog(loop.store, runId) });

async function startedBy(log: ScheduleLog, time: string): Promise<StartedRun> {
  const { outcome, runId } = await fire(log, time);
  expect(outcome).toBe('started');
  return runOf({ runId: runId ?? '' });
}

/** Cancels it and waits for the end. */
async function end(run: StartedRun): Promise<void> {
  await petrel('cancel', run.runId, '-y');
  await loop.reaches(run, 'cancelled');
}

/** Decisions as `second outcome`. */
async function outcomes(log: ScheduleLog): Promise<string[]> {
  return (await log.entries()).map(({ time, outcome }) => `${Number(time.slice(17, 19))} ${outcome}`);
}

describe('a schedule', () => {
  it('starts runs by the clock, each with its own id, until it is removed', async () => {
    const log = await add('clock', short, '--every', '2s');
    const started = await until('two completed runs', async () => {
      const { firings } = await show('clock');
      const done = firings.filter(({ state }) => state === 'completed');
      return done.length >= 2 ? done : undefined;
    });
    const ids = started.map(({ runId }) => runId ?? '');
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => runIdPattern.test(id) && id.startsWith('clock-'))).toBe(true);
    expect(started.every(({ seconds, iteration, time }) => (seconds ?? 0) > 0 && iteration === 1 && Date.parse(time) % 2000 === 0)).toBe(true);
    const [listed] = (await petrel('schedule', 'ls', '--json')).json<ScheduleSummary[]>();
    expect(listed?.nextTimes.length).toBeGreaterThan(2);
    expect(listed).toMatchObject({ name: 'clock', state: 'active', overlap: 'skip', catchUpMs: 2_000, mine: true });

    await petrel('schedule', 'rm', 'clock', '-y');
    expect(await describeSchedule(loop.client, temporalScheduleId(log))).toBeUndefined();
    expect((await log.record())?.state).toBe('removed');
    expect(await fire(log, second(1), false)).toEqual({ outcome: 'dropped' });
    await expect(petrel('schedule', 'show', 'clock')).rejects.toMatchObject({ code: 'NotFound', message: expect.stringContaining('was removed') });
    expect((await petrel('ls', '--json')).json<{ runId: string }[]>().map(({ runId }) => runId)).toEqual(expect.arrayContaining(ids));
  });

  it('makes one run of one time, whoever fires it and how often', async () => {
    const log = await add('once', short, '--every', '1d', '--overlap', 'all');
    const answers = await Promise.all([1, 2, 3, 4].map(() => fire(log, second(5))));
    expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1);
    await loop.reaches(runOf(answers[0] as { runId: string }), 'completed');
    expect(await fire(log, second(5))).toEqual(answers[0]);
    expect(await outcomes(log)).toEqual(['5 started']);
    expect((await loop.store.children(keys.runs)).filter((id) => id.startsWith('once-'))).toHaveLength(1);
  });

  it('is frozen when it is added: files may change or go, and --replace takes the new ones', async () => {
    const scorer = loop.scorer('first', 'return 1;');
    const custom = { reward: { custom_reward_function: { path: scorer, deterministic: true } } };
    const log = await add('frozen', { ...short, ...custom }, '--every', '1d');
    loop.scorer('first', 'throw new Error("changed");');
    const before = await startedBy(log, second(1));
    await loop.reaches(before, 'completed');
    expect(JSON.stringify((await before.log.revision()).recipe)).not.toContain(loop.home);
    await expect(petrel('schedule', 'add', loop.recipeFile('frozen', short), '--every', '1d')).rejects.toMatchObject({ code: 'Conflict', hint: expect.stringContaining('--replace') });
    loop.scorer('first', 'return 0;');
    await add('frozen', { ...short, ...custom }, '--every', '2d', '--replace');
    const after = await startedBy(log, second(1));
    expect(after.runId).not.toBe(before.runId);
    await loop.reaches(after, 'completed');
    expect((await after.log.revision()).inputs.scorer).not.toEqual((await before.log.revision()).inputs.scorer);
    expect((await show('frozen')).times).toEqual({ type: 'every', everyMs: 2 * 86_400_000 });
  });

  it('shows what it was asked for', async () => {
    await add('options', short, '--cron', '0 3 * * mon', '--timezone', 'Europe/Berlin', '--jitter', '5m', '--until', '2100-01-01', '--catch-up', '2h', '--overlap', 'buffer');
    const { out } = await petrel('schedule', 'show', 'options');
    for (const part of ['cron 0 3 * * mon (Europe/Berlin)', 'up to 5m later', '2100-01-01 00:00:00Z', 'up to 2h late', 'buffer: start when it has ended']) expect(out).toContain(part);
    const live = await describeSchedule(loop.client, temporalScheduleId(new ScheduleLog(loop.store, 'options')));
    expect((await show('options')).nextTimes).toEqual(live?.nextTimes.slice(0, 5).map((time) => time.toISOString()));
  });

  it('that is paused starts nothing by itself, but what a person triggers', async () => {
    const log = await add('paused', short, '--every', '1d');
    await petrel('schedule', 'pause', 'paused', '--note', 'no disk');
    expect((await describeSchedule(loop.client, temporalScheduleId(log)))?.paused).toBe(true);
    expect(await show('paused')).toMatchObject({ state: 'paused', note: 'no disk', nextTimes: [] });
    expect(await fire(log, second(1), false)).toEqual({ outcome: 'dropped' });
    const { runId } = (await petrel('schedule', 'trigger', 'paused', '--json')).json<{ runId: string }>();
    await loop.reaches(runOf({ runId }), 'completed');
    await petrel('schedule', 'unpause', 'paused');
    expect((await describeSchedule(loop.client, temporalScheduleId(log)))?.paused).toBe(false);
    await loop.reaches(await startedBy(log, second(2)), 'completed');
  });

  it('of another stack is left to it, until this one takes it over', async () => {
    const log = await add('moved', short, '--every', '1d');
    await changeSchedule(log, () => ({ state: 'active', owner: 'elsewhere-123456' }), new Date());
    await until('no Temporal Schedule here', async () => (await describeSchedule(loop.client, temporalScheduleId(log))) === undefined);
    expect((await petrel('schedule', 'show', 'moved')).out).toContain('elsewhere-123456, another stack');
    await expect(petrel('schedule', 'trigger', 'moved')).rejects.toMatchObject({ code: 'Conflict', hint: expect.stringContaining('takes it over') });
    expect(await fire(log, second(1))).toEqual({ outcome: 'dropped' });
    await petrel('schedule', 'unpause', 'moved');
    await loop.reaches(await startedBy(log, second(1)), 'completed');
  });
});

describe('when a run of the schedule has not ended', () => {
  it('skip: none is started, also when that run was stopped and resumed, or is paused', async () => {
    const log = await add('skip', long, '--every', '1d');
    const first = await startedBy(log, second(1));
    expect(await fire(log, second(2))).toMatchObject({ outcome: 'skipped', why: `${first.runId} has not ended` });
    await loop.passes(first, 1);
    await petrel('stop', first.runId);
    await loop.reaches(first, 'stopped');
    await petrel('resume', first.runId);
    await loop.reaches(first, 'running');
    expect(await fire(log, second(3))).toMatchObject({ outcome: 'skipped' });
    await petrel('pause', first.runId);
    await loop.reaches(first, 'paused');
    await expect(petrel('schedule', 'trigger', 'skip')).rejects.toMatchObject({ code: 'Conflict', message: expect.stringContaining(first.runId) });
    expect(await show('skip')).toMatchObject({ active: [{ runId: first.runId, state: 'paused' }], skipped: 3 });
    const { out } = await petrel('schedule', 'show', 'skip');
    expect(out).toMatch(new RegExp(`blocked by +${first.runId} \\(paused\\)`));
    expect((await show('skip')).firings[0]).toMatchObject({ outcome: 'skipped', kind: 'triggered', by: [first.runId] });
    await end(first);
    await end(await startedBy(log, second(4)));
  });

  it('buffer: one waits for its end, others are skipped', async () => {
    const log = await add('buffer', long, '--every', '1d', '--overlap', 'buffer');
    const first = await startedBy(log, second(1));
    const waiting = fire(log, second(2));
    await until('one that waits', async () => (await outcomes(log)).includes('2 waiting'));
    expect(await fire(log, second(3))).toMatchObject({ outcome: 'skipped', why: `the one of ${second(2)} waits already` });
    await end(first);
    const { runId, outcome } = await waiting;
    expect([outcome, await outcomes(log)]).toEqual(['started', ['1 started', '2 waiting', '3 skipped', '2 started']]);
    await end(runOf({ runId: runId ?? '' }));
  });

  it('cancel: it is cancelled, and the newest takes its place', async () => {
    const log = await add('cancel', long, '--every', '1d', '--overlap', 'cancel');
    const first = await startedBy(log, second(1));
    await loop.reaches(first, 'running');
    const second_ = await startedBy(log, second(2));
    expect((await first.log.status())?.state).toBe('cancelled');
    await loop.reaches(second_, 'running');
    await petrel('pause', second_.runId);
    await loop.reaches(second_, 'paused');
    const third = await startedBy(log, second(3));
    expect((await second_.log.status())?.state).toBe('cancelled');
    await end(third);
  });

  it('all: they run side by side', async () => {
    const log = await add('all', long, '--every', '1d', '--overlap', 'all');
    const runs = [await startedBy(log, second(1)), await startedBy(log, second(2))];
    expect((await show('all')).active.map(({ runId }) => runId)).toEqual(runs.map(({ runId }) => runId));
    for (const run of runs) await end(run);
  });

  it('a backfill starts run after run in order of time, and what the clock brings goes first', async () => {
    const log = await add('past', long, '--every', '1d', '--overlap', 'buffer', '--backfill', '2026-01-01..2026-01-03');
    const first = await until('the first', async () => (await log.view()).firings.find(({ outcome }) => outcome === 'started'));
    await until('two that wait', async () => (await log.view()).firings.filter(({ outcome }) => outcome === 'waiting').length === 2);
    expect(first).toMatchObject({ time: '2026-01-01T00:00:00.000Z', kind: 'backfill' });
    expect((await show('past')).backfill).toMatchObject({ left: 2 });
    const triggered = fire(log, isoSeconds(new Date()));
    await until('three that wait', async () => (await log.view()).firings.filter(({ outcome }) => outcome === 'waiting').length === 3);
    await end(runOf(first));
    await end(runOf({ runId: (await triggered).runId ?? '' }));
    for (const day of ['02', '03']) {
      const next = await until(`the one of January ${day}`, async () => (await log.view()).firings.find(({ time, runId }) => time.startsWith(`2026-01-${day}`) && runId !== undefined));
      await end(runOf(next));
    }
    expect((await log.entries()).flatMap(({ outcome, kind }) => (outcome === 'started' ? kind : []))).toEqual(['backfill', 'triggered', 'backfill', 'backfill']);
    expect((await show('past')).backfill).toMatchObject({ left: 0 });
  });
});
