import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PermitTiming } from '../../../core/wire/permits.ts';
import { RunPermits } from './run-permits.ts';

const timing: PermitTiming = { leaseMs: 1_000, pollMs: 100, minuteMs: 61_000, silenceMs: 1_000 };
const permitsOf = (limits: { concurrent: number; rpm?: number; tpm?: number }, usedAt?: number) =>
  new RunPermits(limits, timing, 0, usedAt);

describe('the permits of a run', () => {
  it('are given in the order of the asks, as many as may be in use', () => {
    const permits = permitsOf({ concurrent: 2 });
    for (const id of ['a', 'b', 'c', 'd']) permits.ask(id, 1);
    expect(permits.give(0)).toEqual(['a', 'b']);
    permits.release('b', undefined, undefined, 5);
    expect(permits.give(5)).toEqual(['c']);
    expect(permits.give(6)).toEqual([]);
  });

  it('come back when their holder does not renew them', () => {
    const permits = permitsOf({ concurrent: 1 });
    permits.ask('a', 1);
    permits.ask('b', 1);
    permits.give(0);
    permits.renew({ id: 'a', tokens: 1, ageMs: 900 }, 900);
    expect(permits.nextAt(900)).toBe(1_900);
    expect(permits.give(1_899)).toEqual([]);
    expect(permits.give(1_900)).toEqual(['b']);
  });

  it('are asked twice for one id when an answer was lost, and are one permit', () => {
    const permits = permitsOf({ concurrent: 2 });
    permits.ask('a', 1);
    permits.ask('a', 1);
    expect(permits.give(0)).toEqual(['a']);
    permits.ask('a', 1);
    expect(permits.give(1)).toEqual([]);
    expect(permits.isGiven('a')).toBe(true);
  });

  it('are not more in a minute than the limit, counted from each request', () => {
    const permits = permitsOf({ concurrent: 9, rpm: 2 });
    for (const id of ['a', 'b', 'c', 'd']) permits.ask(id, 1);
    expect(permits.give(0)).toEqual(['a', 'b']);
    for (const id of ['a', 'b']) permits.release(id, undefined, undefined, 10);
    expect(permits.nextAt(10)).toBe(61_000);
    expect(permits.give(60_999)).toEqual([]);
    expect(permits.give(61_000)).toEqual(['c', 'd']);
  });

  it('count the tokens that a request had in the end; a request above the limit waits for an empty minute', () => {
    const permits = permitsOf({ concurrent: 9, tpm: 100 });
    permits.ask('a', 60);
    permits.ask('b', 60);
    expect(permits.give(0)).toEqual(['a']);
    permits.release('a', 20, undefined, 10);
    expect(permits.give(10)).toEqual(['b']);
    permits.release('b', 60, undefined, 20);
    permits.ask('large', 5_000);
    expect(permits.give(61_000)).toEqual([]);
    expect(permits.give(61_010)).toEqual(['large']);
  });

  it('are not given while the endpoint wants everybody to wait', () => {
    const permits = permitsOf({ concurrent: 2 });
    permits.ask('a', 1);
    permits.give(0);
    permits.release('a', undefined, 5_000, 100);
    permits.ask('b', 1);
    expect(permits.nextAt(100)).toBe(5_100);
    expect(permits.give(5_099)).toEqual([]);
    expect(permits.give(5_100)).toEqual(['b']);
  });

  it('begin with the requests of the control process before this one: those in use are renewed, the minute is full', () => {
    const used = -10_000;
    const plain = permitsOf({ concurrent: 2 }, used);
    plain.ask('new', 1);
    plain.renew({ id: 'old', tokens: 1, ageMs: 5_000 }, 300);
    plain.renew({ id: 'older', tokens: 1, ageMs: 5_000 }, 300);
    expect(plain.give(999)).toEqual([]);
    expect(plain.give(1_000)).toEqual([]);
    expect(plain.inUse).toBe(2);
    plain.release('old', undefined, undefined, 1_100);
    expect(plain.give(1_100)).toEqual(['new']);
    const rated = permitsOf({ concurrent: 2, rpm: 100 }, used);
    rated.ask('new', 1);
    expect(rated.give(50_999)).toEqual([]);
    expect(rated.give(51_000)).toEqual(['new']);
    const unused = permitsOf({ concurrent: 2, rpm: 100 }, -61_000);
    unused.ask('new', 1);
    expect(unused.give(0)).toEqual(['new']);
  });

  it('keep all limits for any asks, ends and deaths, and answer every ask in the end (300 cases)', () => {
    const event = fc.record({
      wait: fc.integer({ min: 0, max: 20_000 }),
      asks: fc.integer({ min: 0, max: 4 }),
      tokens: fc.integer({ min: 0, max: 150 }),
      end: fc.constantFrom('release', 'die', 'keep'),
    });
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 25 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 4 }),
        (events, concurrent, rpm) => {
          const permits = permitsOf({ concurrent, rpm, tpm: 150 });
          const given: { at: number; tokens: number }[] = [];
          const tokensOf = new Map<string, number>();
          const held: string[] = [];
          let [now, asked] = [0, 0];
          const give = () => {
            for (const id of permits.give(now)) {
              given.push({ at: now, tokens: tokensOf.get(id) ?? 0 });
              held.push(id);
            }
            expect(permits.inUse).toBeLessThanOrEqual(concurrent);
          };
          for (const { wait, asks, tokens, end } of events) {
            now += wait;
            for (let i = 0; i < asks; i++) {
              tokensOf.set(`${++asked}`, tokens);
              permits.ask(`${asked}`, tokens);
            }
            give();
            const id = held[0];
            if (id !== undefined && end !== 'keep') held.shift();
            if (id !== undefined && end === 'release') permits.release(id, undefined, undefined, now);
          }
          for (let next = permits.nextAt(now); next !== undefined; next = permits.nextAt(now)) {
            expect(next).toBeGreaterThan(now);
            now = next;
            give();
          }
          expect(given).toHaveLength(asked);
          for (const { at } of given) {
            const minute = given.filter((one) => one.at >= at && one.at < at + 60_000);
            expect(minute.length).toBeLessThanOrEqual(rpm);
            expect(minute.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(150);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
