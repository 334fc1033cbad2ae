/** Schedules with the stack down: what the store alone tells, and what is noted for later. */
import { afterAll, describe, expect, it } from 'vitest';
import type { ScheduleDefinition } from '../../../core/records/schema.ts';
import { scheduleTiming } from '../../../core/schedules/request.ts';
import type { ScheduleRequest } from '../../../core/schedules/request.ts';
import { stackName } from '../../../infra/stack/identity.ts';
import { changeSchedule, ScheduleLog } from '../../../log/schedules/schedule-log.ts';
import { cliHome } from '../../../tests/cli.ts';
import { buildRun } from '../../../tests/run-builder.ts';
import type { ScheduleSummary } from '../../../api/index.ts';

const cli = cliHome();
afterAll(() => cli.remove());

async function scheduled(name: string, request: ScheduleRequest): Promise<ScheduleLog> {
  const log = new ScheduleLog(await cli.store(), name);
  const inputs = { model: '0'.repeat(64), train: '0'.repeat(64), trainRows: 1 };
  const definition: ScheduleDefinition = { ...scheduleTiming(request, new Date()), kind: 'rl', recipe: {}, inputs };
  await changeSchedule(log, () => ({ state: 'active', owner: stackName(cli.home), definition }), new Date());
  return log;
}

describe('with the stack down', () => {
  it('ls says when there is none', async () => {
    const { out, err } = await cli.petrel('schedule', 'ls');
    expect([out.trim(), err.trim()]).toEqual(['no schedules', 'petrel schedule add <recipe> --every 6h creates one']);
  });

  it('ls and show tell next times, the last run and what blocks', async () => {
    const log = await scheduled('nightly', { cron: '0 3 * * *', overlap: 'buffer' });
    const done = await buildRun(await cli.store(), {
      name: 'nightly',
      done: 2,
      evaluations: [0, 2],
      status: { state: 'completed' },
    });
    const paused = await buildRun(await cli.store(), {
      name: 'nightly',
      createdAt: new Date(Date.now() + 60_000),
      done: 1,
      status: { state: 'paused' },
    });
    const entry = { at: new Date().toISOString(), generation: 1, kind: 'scheduled' } as const;
    await log.appendFiring(0, { ...entry, time: '2026-11-18T03:00:00.000Z', outcome: 'started', runId: done.runId });
    await log.appendFiring(1, { ...entry, time: '2026-11-19T03:00:00.000Z', outcome: 'started', runId: paused.runId });
    await log.appendFiring(2, {
      ...entry,
      time: '2026-11-20T03:00:00.000Z',
      outcome: 'waiting',
      by: [paused.runId],
      why: `${paused.runId} has not ended`,
    });
    await log.appendFiring(3, {
      ...entry,
      time: '2026-11-21T03:00:00.000Z',
      outcome: 'skipped',
      why: 'the one of 2026-11-20T03:00:00.000Z waits already',
    });
    const { out, err } = await cli.petrel('schedule', 'ls');
    expect(out).toMatch(/nightly +active +cron 0 3 \* \* \* +\d{4}-\d\d-\d\d 03:00:00Z +buffer/);
    expect(err).toContain('nothing starts until petrel up');
    const [summary] = (await cli.petrel('schedule', 'ls', '--json')).json<ScheduleSummary[]>();
    expect(summary).toMatchObject({
      active: [{ runId: paused.runId, state: 'paused' }],
      waiting: 1,
      skipped: 1,
      missed: null,
      mine: true,
    });
    expect(summary?.nextTimes).toHaveLength(5);
    expect(summary?.firings.map(({ outcome, state }) => [outcome, state])).toEqual([
      ['skipped', null],
      ['waiting', null],
      ['started', 'paused'],
      ['started', 'completed'],
    ]);
    expect(summary?.firings.at(-1)?.accuracy).toEqual(expect.any(Number));
    const shown = (await cli.petrel('schedule', 'show', 'nightly')).out;
    expect(shown).toContain(`${paused.runId} (paused)`);
    expect(shown).toMatch(/skipped +- +- +- +- +the one of/);
    expect(
      (await cli.petrel('schedule', 'show', 'nightly', '--limit', '1', '--json')).json<ScheduleSummary>().firings,
    ).toHaveLength(1);
  });

  it('pause, unpause and rm are noted in the store, for all to come', async () => {
    const log = await scheduled('hourly', { every: '1h' });
    await cli.petrel('schedule', 'pause', 'hourly', '--note', 'later');
    expect(await log.record()).toMatchObject({ n: 2, state: 'paused', note: 'later', generation: 1 });
    expect((await cli.petrel('schedule', 'show', 'hourly')).out).toContain('paused: later');
    expect((await cli.petrel('schedule', 'unpause', 'hourly')).err).toContain('nothing starts until petrel up');
    await cli.petrel('schedule', 'unpause', 'hourly');
    expect(await log.record()).toMatchObject({ n: 3, state: 'active' });
    await expect(cli.petrel('schedule', 'rm', 'hourly')).rejects.toMatchObject({
      code: 'InvalidInput',
      hint: 'confirm with --yes',
    });
    await cli.petrel('schedule', 'rm', 'hourly', '-y');
    expect((await log.record())?.state).toBe('removed');
    await expect(cli.petrel('schedule', 'pause', 'hourly')).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringContaining('removed'),
    });
  });

  it('a wrong name gets the nearest right one', async () => {
    await expect(cli.petrel('schedule', 'show', 'nihgtly')).rejects.toMatchObject({
      code: 'NotFound',
      hint: 'did you mean nightly?',
    });
  });

  it('add refuses wrong times before it reads anything', async () => {
    await expect(cli.petrel('schedule', 'add', './no-recipe.yaml')).rejects.toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('--every or --cron'),
    });
    await expect(cli.petrel('schedule', 'add', './no-recipe.yaml', '--every', '1h')).rejects.toMatchObject({
      message: 'there is no recipe ./no-recipe.yaml',
    });
  });
});
