import { expect, it } from 'vitest';
import { Histories } from './histories.ts';

const seen = (events: number, taskAttempts = 0, execution = 'first') => ({ execution, events, taskAttempts });

it('a history that grows, and one of a new execution, are sound', () => {
  const histories = new Histories();
  expect(
    [seen(10), seen(12, 1), seen(12, 2), seen(40), seen(3, 1, 'second')].map((one) => histories.doubt('run', one)),
  ).toEqual(Array(5).fill(undefined));
});

it('a history that was longer before is not sound', () => {
  const histories = new Histories();
  histories.doubt('run', seen(137));
  expect(histories.doubt('run', seen(29))).toMatch(/29 events and had 137/);
});

it('a task that failed in several attempts of this process makes its workflow stuck', () => {
  const histories = new Histories();
  const doubts = (...attempts: number[]) => attempts.map((attempt) => histories.doubt('run', seen(29, attempt)));
  expect(doubts(7, 8)).toEqual([undefined, undefined]);
  expect(doubts(9)).toEqual(['its task failed in 2 attempts']);
});

it('the running attempt does not count as failed', () => {
  const histories = new Histories();
  histories.doubt('run', seen(29));
  expect(histories.doubt('run', seen(31, 2))).toBeUndefined();
  expect(histories.doubt('run', seen(31, 3))).toMatch(/failed in 2 attempts/);
});

it('attempts of an earlier process do not count, even after a signal; those of the next task do', () => {
  const histories = new Histories();
  histories.doubt('run', seen(30, 7));
  expect(histories.doubt('run', seen(31, 7))).toBeUndefined();
  expect(histories.doubt('run', seen(32, 8))).toBeUndefined();
  expect(histories.doubt('run', seen(40, 1))).toBeUndefined();
  expect(histories.doubt('run', seen(42, 3))).toMatch(/failed in 2 attempts/);
});

it('attempts that timed out while this process was stopped do not count, those after it do', () => {
  let now = 0;
  const histories = new Histories(() => now);
  histories.doubt('run', seen(29, 1));
  now += 25_000;
  expect(histories.doubt('run', seen(31, 4))).toBeUndefined();
  // The attempt that was under way may time out, too.
  now += 9_000;
  expect(histories.doubt('run', seen(31, 6))).toBeUndefined();
  now += 1_000;
  expect(histories.doubt('run', seen(31, 7))).toBeUndefined();
  expect(histories.doubt('run', seen(31, 8))).toMatch(/failed in 2 attempts/);
});

it('a workflow that is always stuck is ended at longer and longer intervals, until one makes progress', () => {
  let now = 0;
  const histories = new Histories(() => now);
  let executions = 0;
  const msUntilDoubt = () => {
    const began = now;
    const execution = `${++executions}`;
    histories.doubt('run', seen(3, 1, execution));
    while (histories.doubt('run', seen(5, 3, execution)) === undefined) now += 1_000;
    histories.ended('run');
    return now - began;
  };
  expect([1, 2, 3, 4].map(msUntilDoubt)).toEqual([0, 2_000, 4_000, 8_000]);
  const gotOn = seen(300, 0, 'got on');
  for (const look of [1, 2]) expect(histories.doubt('run', gotOn), `look ${look}`).toBeUndefined();
  expect(msUntilDoubt()).toBe(0);
});
