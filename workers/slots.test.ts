import { describe, expect, it } from 'vitest';
import { Gate, Slots } from './slots.ts';

const tick = () => new Promise((resolve) => setImmediate(resolve));

describe('slots', () => {
  it('admit as many jobs as there are slots, then in the order of requests', async () => {
    const slots = new Slots(2);
    const order: number[] = [];
    for (const i of [1, 2, 3, 4]) void slots.enter().then(() => order.push(i));
    await tick();
    expect(order).toEqual([1, 2]);
    slots.leave();
    await tick();
    expect(order).toEqual([1, 2, 3]);
  });
});

describe('the gate', () => {
  it('lets one job run alone, between the shared ones before and after it', async () => {
    const gate = new Gate();
    const log: string[] = [];
    const release: (() => void)[] = [];
    const job = (name: string, exclusive: boolean) =>
      gate.run(exclusive, async () => {
        log.push(`+${name}`);
        await new Promise<void>((resolve) => release.push(resolve));
        log.push(`-${name}`);
      });
    const all = [job('a', false), job('b', false), job('alone', true), job('c', false)];
    await tick();
    expect(log).toEqual(['+a', '+b']);
    release.shift()?.();
    release.shift()?.();
    await tick();
    expect(log).toEqual(['+a', '+b', '-a', '-b', '+alone']);
    release.shift()?.();
    await tick();
    expect(log.slice(-2)).toEqual(['-alone', '+c']);
    release.shift()?.();
    await Promise.all(all);
  });
});
