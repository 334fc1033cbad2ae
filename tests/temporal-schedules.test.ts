import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timesAfter } from '../core/schedules/times.ts';
import type { ScheduleTimes } from '../core/schedules/times.ts';
import type { HasTemporal } from '../infra/temporal/connection.ts';
import { connectTemporalClient } from '../infra/temporal/connection.ts';
import { actionWorkflowId, describeSchedule, ensureSchedule, removeSchedule } from '../infra/temporal/schedules.ts';
import type { WantedSchedule } from '../infra/temporal/schedules.ts';
import { poll } from '../infra/poll.ts';
import { startTemporal, temporaryHome } from './servers.ts';
import type { TestServer } from './servers.ts';
import { patienceMs } from './patience.ts';

const { home, remove } = temporaryHome();
let server: TestServer & HasTemporal;
let client: Client;
beforeAll(async () => {
  server = await startTemporal(join(home, 'temporal'));
  client = await connectTemporalClient(server);
});
afterAll(async () => {
  await client.connection.close();
  await server.stop();
  remove();
});

function wanted(id: string, change: Partial<WantedSchedule> = {}): WantedSchedule {
  const action = { workflow: 'nobodyRunsThis', workflowId: `action-${id}`, args: [{ id }] };
  return {
    id,
    times: { type: 'every', everyMs: 3_600_000 },
    catchUpMs: 3_600_000,
    overlap: 'all',
    paused: false,
    action,
    ...change,
  };
}

/** Workflows that a Schedule started, by id. */
async function started(id: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { workflowId } of client.workflow.list({ query: `WorkflowId STARTS_WITH "action-${id}-"` }))
    ids.push(workflowId);
  return ids.sort();
}

describe('a Temporal Schedule', () => {
  it('is created once, for any number of callers and calls', async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => ensureSchedule(client, wanted('once'))));
    expect(answers.filter((answer) => answer === 'made')).toHaveLength(1);
    expect(answers.filter((answer) => answer === 'there')).toHaveLength(3);
    expect(await ensureSchedule(client, wanted('once'))).toBe('there');
  });

  it('is updated when its definition changes, or when another program has changed it', async () => {
    await ensureSchedule(client, wanted('changed'));
    const paused = wanted('changed', {
      paused: true,
      times: { type: 'every', everyMs: 60_000 },
      jitterMs: 5_000,
      until: new Date('2200-01-01T00:00:00Z'),
    });
    expect(await ensureSchedule(client, paused)).toBe('changed');
    expect(await ensureSchedule(client, paused)).toBe('there');
    const { spec, policies, state } = await client.schedule.getHandle('changed').describe();
    expect(spec).toMatchObject({
      intervals: [{ every: 60_000 }],
      jitter: 5_000,
      endAt: new Date('2200-01-01T00:00:00Z'),
    });
    expect([policies.overlap, policies.catchupWindow, state.paused]).toEqual(['ALLOW_ALL', 3_600_000, true]);
    await client.schedule.getHandle('changed').unpause();
    expect(await ensureSchedule(client, paused)).toBe('changed');
    expect((await describeSchedule(client, 'changed'))?.paused).toBe(true);
  });

  it('that does not exist is reported as missing', async () => {
    await ensureSchedule(client, wanted('gone'));
    expect([await removeSchedule(client, 'gone'), await removeSchedule(client, 'gone')]).toEqual([true, false]);
    expect(await describeSchedule(client, 'gone')).toBeUndefined();
  });

  it('that is created again fires once for the times that it missed within its window', async () => {
    const hour = 3_600_000;
    const now = new Date('2026-11-20T12:30:00Z');
    const again = wanted('again', { catchUpMs: 2 * hour });
    await ensureSchedule(client, again, { from: new Date('2026-11-01T00:00:00Z'), now });
    const expected = ['2026-11-20T11:00:00Z', '2026-11-20T12:00:00Z'].map((time) =>
      actionWorkflowId('action-again', new Date(time)),
    );
    await poll(async () => (await started('again')).length >= 2, { everyMs: 50, timeoutMs: patienceMs });
    expect(await started('again')).toEqual(expected);
  });

  it('that is paused, or is newer than the missed times, does not fire for them', async () => {
    const now = new Date();
    await ensureSchedule(client, wanted('paused', { paused: true }), { from: new Date(0), now });
    await ensureSchedule(client, wanted('new'), { from: now, now });
    expect((await client.schedule.getHandle('paused').describe()).info.numActionsTaken).toBe(0);
    expect((await client.schedule.getHandle('new').describe()).info.numActionsTaken).toBe(0);
  });

  const times: readonly ScheduleTimes[] = [
    { type: 'every', everyMs: 90_000 },
    { type: 'every', everyMs: 7 * 3_600_000 },
    { type: 'cron', cron: '*/7 3,15-17 * * mon-fri', timezone: 'UTC' },
    { type: 'cron', cron: '0 0 29 2 *', timezone: 'UTC' },
    { type: 'cron', cron: '30 2 * * *', timezone: 'Europe/Berlin' },
    { type: 'cron', cron: '15 */5 1,15 jan,jul *', timezone: 'America/St_Johns' },
    { type: 'cron', cron: '0 6 * * 7', timezone: 'Asia/Kathmandu' },
  ];
  it.each(times)('fires at the times that petrel prints: $cron $everyMs $timezone', async (when) => {
    const id = `times-${times.indexOf(when)}`;
    await ensureSchedule(client, wanted(id, { times: when }));
    const next = (await describeSchedule(client, id))?.nextTimes ?? [];
    expect(next.length).toBeGreaterThan(4);
    const before = new Date((next[0]?.getTime() ?? 0) - 1);
    expect(timesAfter(when, before, next.length)).toEqual(next);
  });
});
