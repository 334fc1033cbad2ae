import { expect, it } from 'vitest';
import { Reminders } from './reminders.ts';

const running = { state: 'running', wish: 'run' } as const;
const stopping = { state: 'running', wish: 'stop' } as const;
const paused = { state: 'paused', wish: 'pause' } as const;

function atTime(): { readonly reminders: Reminders; pass(ms: number): void } {
  let nowMs = 0;
  return { reminders: new Reminders(() => nowMs), pass: (ms) => void (nowMs += ms) };
}

it('an execution that is new to this process is compared once, then only while its desired state is not reached', () => {
  const { reminders, pass } = atTime();
  expect(reminders.isDue('a', 'e1', running)).toBe(true);
  expect(reminders.isDue('a', 'e1', running)).toBe(true); // the comparison failed: Temporal did not answer
  reminders.done('a', 'e1', running);
  pass(30 * 86_400_000);
  expect(reminders.isDue('a', 'e1', running)).toBe(false);
  expect(reminders.isDue('a', 'e1', paused)).toBe(false);
  expect(reminders.isDue('a', 'e2', paused)).toBe(true);
});

it('the first reminder comes a second after the command, and the intervals double', () => {
  const { reminders, pass } = atTime();
  reminders.done('a', 'e1', running);
  const due: number[] = [];
  for (let second = 0; second <= 40; second++, pass(1_000)) {
    if (!reminders.isDue('a', 'e1', stopping)) continue;
    due.push(second);
    reminders.done('a', 'e1', stopping);
  }
  expect(due).toEqual([1, 3, 7, 15, 31]);
});

it('a stop that cannot be completed for a day causes fewer than 200 reminders', () => {
  const { reminders, pass } = atTime();
  reminders.done('a', 'e1', running);
  let count = 0;
  for (let second = 0; second < 86_400; second++, pass(1_000)) {
    if (!reminders.isDue('a', 'e1', { state: 'paused', wish: 'stop' })) continue;
    count += 1;
    reminders.done('a', 'e1', { state: 'paused', wish: 'stop' });
  }
  expect(count).toBeGreaterThan(100);
  expect(count).toBeLessThan(200);
});

it('a changed desired state starts with short intervals again', () => {
  const { reminders, pass } = atTime();
  reminders.done('a', 'e1', stopping);
  for (let second = 0; second < 3_600; second++, pass(1_000))
    if (reminders.isDue('a', 'e1', stopping)) reminders.done('a', 'e1', stopping);
  expect(reminders.isDue('a', 'e1', { state: 'running', wish: 'cancel' })).toBe(false);
  pass(1_000);
  expect(reminders.isDue('a', 'e1', { state: 'running', wish: 'cancel' })).toBe(true);
});
