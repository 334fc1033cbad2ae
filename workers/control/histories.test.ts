import { expect, it } from 'vitest';
import { Histories } from './histories.ts';

const seen = (events: number, taskAttempts = 0, execution = 'first') => ({ execution, events, taskAttempts });

it('a history that grows, and one of a new execution, are believed', () => {
  const histories = new Histories();
  expect([seen(10), seen(12, 1), seen(12, 2), seen(40), seen(3, 1, 'second')].map((one) => histories.doubt('run', one))).toEqual(Array(5).fill(undefined));
});

it('a history that was longer before is not', () => {
  const histories = new Histories();
  histories.doubt('run', seen(137));
  expect(histories.doubt('run', seen(29))).toMatch(/29 events and had 137/);
});

it('a task that is handed out again and again while this process is there is not done by it', () => {
  const histories = new Histories();
  expect(histories.doubt('run', seen(29, 7))).toBeUndefined();
  expect(histories.doubt('run', seen(29, 9))).toBeUndefined();
  expect(histories.doubt('run', seen(29, 10))).toMatch(/not done in 3 tries/);
  histories.forget('run');
  expect(histories.doubt('run', seen(29, 10))).toBeUndefined();
  expect(histories.doubt('run', seen(31, 2))).toBeUndefined();
  expect(histories.doubt('run', seen(31, 3))).toMatch(/not done in 3 tries/);
});
