import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FiringRecord, ScheduleRecord } from '../records/schema.ts';
import { decideFiring, isOf, isoSeconds, kindOf, missingBackfill } from './decide.ts';
import type { Firing } from './decide.ts';
import { overlapPolicies } from '../records/overlap-policies.ts';
import type { OverlapPolicy } from '../records/overlap-policies.ts';

const hour = 3_600_000;
const since = '2026-11-21T12:00:00.000Z';
const at = (hours: number) => isoSeconds(new Date(Date.parse(since) + hours * hour));

function record(
  change: Partial<ScheduleRecord> = {},
  definition: Partial<ScheduleRecord['definition']> = {},
): ScheduleRecord {
  return {
    format: 1,
    schedule: 's',
    n: 1,
    at: since,
    state: 'active',
    owner: 'me',
    generation: 1,
    definition: {
      since,
      times: { type: 'every', everyMs: hour },
      overlap: 'skip',
      catchUpMs: hour,
      kind: 'rl',
      recipe: {},
      inputs: { model: '0'.repeat(64), train: '0'.repeat(64), trainRows: 1 },
      ...definition,
    },
    ...change,
  };
}

function firing(hours: number, triggered = false): Firing {
  return { generation: 1, time: at(hours), triggered };
}

let n = 0;
function entry(
  hours: number,
  outcome: FiringRecord['outcome'],
  kind: FiringRecord['kind'] = 'scheduled',
  runId?: string,
): FiringRecord {
  n += 1;
  return {
    format: 1,
    schedule: 's',
    n,
    at: since,
    generation: 1,
    time: at(hours),
    kind,
    outcome,
    ...(runId === undefined ? {} : { runId }),
  };
}

const busy = ['run-a'];

describe('a time', () => {
  it('keeps its outcome once it is decided', () => {
    for (const outcome of ['started', 'skipped', 'failed'] as const) {
      const known = entry(1, outcome);
      expect(decideFiring({ record: record({ state: 'removed' }), firings: [known], active: [] }, firing(1))).toEqual({
        type: 'decided',
        firing: known,
      });
    }
  });

  it('of a schedule that was removed, replaced, paused or has ended is dropped without an entry; one that waited is skipped', () => {
    const none = { firings: [], active: [] };
    const waited = { firings: [entry(1, 'waiting')], active: [] };
    for (const gone of [
      undefined,
      record({ state: 'removed' }),
      record({ generation: 2 }),
      record({}, { until: at(0.5) }),
    ]) {
      expect(decideFiring({ record: gone, ...none }, firing(1)).type).toBe('drop');
      expect(decideFiring({ record: gone, ...waited }, firing(1)).type).toBe('skip');
    }
    expect(decideFiring({ record: record({ state: 'paused' }), ...none }, firing(1)).type).toBe('drop');
    expect(decideFiring({ record: record({ state: 'paused' }), ...waited }, firing(1)).type).toBe('wait');
    expect(decideFiring({ record: record({ state: 'paused' }), ...none }, firing(1, true)).type).toBe('start');
  });

  it.each<[OverlapPolicy, string]>([
    ['skip', 'skip'],
    ['buffer', 'wait'],
    ['cancel', 'wait'],
    ['all', 'start'],
  ])('%s: with an active run it is to %s, without one to start', (overlap, type) => {
    expect(decideFiring({ record: record({}, { overlap }), firings: [], active: busy }, firing(1)).type).toBe(type);
    expect(decideFiring({ record: record({}, { overlap }), firings: [], active: [] }, firing(1)).type).toBe('start');
  });

  it('buffer keeps the waiting one, cancel the newest', () => {
    const older = entry(1, 'waiting');
    const newer = entry(2, 'waiting');
    const view = (overlap: OverlapPolicy, active: readonly string[] = busy) => ({
      record: record({}, { overlap }),
      firings: [older, newer],
      active,
    });
    expect([
      decideFiring(view('buffer'), firing(1)).type,
      decideFiring(view('buffer'), firing(2)).type,
      decideFiring(view('buffer'), firing(3)).type,
    ]).toEqual(['wait', 'skip', 'skip']);
    expect([
      decideFiring(view('cancel'), firing(1)).type,
      decideFiring(view('cancel'), firing(2)).type,
      decideFiring(view('cancel'), firing(3)).type,
    ]).toEqual(['skip', 'wait', 'wait']);
    expect([
      decideFiring(view('buffer', []), firing(1)).type,
      decideFiring(view('cancel', []), firing(2)).type,
    ]).toEqual(['start', 'start']);
  });
});

describe('a backfill', () => {
  const past = (overlap: OverlapPolicy = 'skip') => record({}, { overlap, backfill: { from: at(-3), to: since } });

  it('consists of the times in its range before the schedule', () => {
    expect([
      kindOf(past(), firing(-4)),
      kindOf(past(), firing(-3)),
      kindOf(past(), firing(-1)),
      kindOf(past(), firing(0)),
      kindOf(past(), firing(-1, true)),
    ]).toEqual(['scheduled', 'backfill', 'backfill', 'backfill', 'triggered']);
    expect(missingBackfill(past(), [entry(-2, 'waiting', 'backfill')])).toEqual([at(-3), at(-1), at(0)]);
    expect(missingBackfill(record(), [])).toEqual([]);
    expect(missingBackfill({ ...past(), state: 'removed' }, [])).toEqual([]);
  });

  it('waits in line and is never skipped; with overlap `all` it starts at once', () => {
    expect(decideFiring({ record: past(), firings: [], active: [] }, firing(-2))).toMatchObject({
      type: 'wait',
      why: `the one of ${at(-3)} comes first`,
    });
    expect(decideFiring({ record: past(), firings: [], active: busy }, firing(-3)).type).toBe('wait');
    expect(
      decideFiring({ record: past(), firings: [entry(-3, 'started', 'backfill')], active: [] }, firing(-2)).type,
    ).toBe('start');
    expect(decideFiring({ record: past('all'), firings: [], active: busy }, firing(-2)).type).toBe('start');
    expect(decideFiring({ record: past('buffer'), firings: [entry(1, 'waiting')], active: [] }, firing(-3)).type).toBe(
      'wait',
    );
  });
});

/** Simulates a schedule: times come, waiting ones look again, and runs end, in any order. */
describe('in any order of events', () => {
  type Event = { readonly type: 'look'; readonly hours: number } | { readonly type: 'end' };
  const events = fc.array(
    fc.oneof(
      fc.integer({ min: -3, max: 6 }).map((hours): Event => ({ type: 'look', hours })),
      fc.constant<Event>({ type: 'end' }),
    ),
    { maxLength: 60 },
  );

  it.each(overlapPolicies)('%s holds, decides each time once, and lets no time wait for ever', (overlap) => {
    fc.assert(
      fc.property(events, (played) => {
        const schedule = record({}, { overlap, backfill: { from: at(-3), to: at(-1) } });
        const entries: FiringRecord[] = [];
        const active: string[] = [];
        let most = 0;
        const newest = () => [...new Map(entries.map((one) => [one.time, one])).values()];
        const step = (event: Event) => {
          if (event.type === 'end') return void active.shift();
          const one = firing(event.hours);
          const decision = decideFiring({ record: schedule, firings: newest(), active }, one);
          if (decision.type === 'wait' && decision.cancel) active.length = 0;
          const outcome =
            decision.type === 'start'
              ? 'started'
              : decision.type === 'skip'
                ? 'skipped'
                : decision.type === 'wait' && !newest().some((known) => isOf(known, one))
                  ? 'waiting'
                  : undefined;
          if (outcome === undefined) return;
          if (outcome === 'started') active.push(one.time);
          most = Math.max(most, active.length);
          entries.push({ ...entry(event.hours, outcome, kindOf(schedule, one)), n: entries.length + 1 });
        };
        played.forEach(step);
        if (overlap !== 'all') expect(most).toBeLessThanOrEqual(1);
        const regular = newest().filter(({ kind, outcome }) => kind === 'scheduled' && outcome === 'waiting');
        if (overlap === 'skip' || overlap === 'all') expect(regular).toEqual([]);
        if (overlap === 'buffer') expect(regular.length).toBeLessThanOrEqual(1);
        // All waiting times look again and runs end: in the end none waits, and no backfilled time was skipped.
        for (let round = 0; round < 12; round++) {
          for (const hours of [
            -3,
            -2,
            -1,
            ...newest().map(({ time }) => (Date.parse(time) - Date.parse(since)) / hour),
          ])
            step({ type: 'look', hours });
          step({ type: 'end' });
        }
        expect(newest().filter(({ outcome }) => outcome === 'waiting')).toEqual([]);
        expect(
          newest()
            .filter(({ kind }) => kind === 'backfill')
            .map(({ outcome }) => outcome),
        ).toEqual(['started', 'started', 'started']);
        for (const { time } of newest())
          expect(entries.filter((one) => one.time === time && one.outcome !== 'waiting')).toHaveLength(1);
      }),
    );
  });
});
