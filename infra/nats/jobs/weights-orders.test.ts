import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../../log/objects/digest.ts';
import { WeightsOrders } from './weights-orders.ts';

const [one, two] = [sha256(Buffer.from('one')), sha256(Buffer.from('two'))];
const urls = (count: number) => Array.from({ length: count }, (_, i) => `http://127.0.0.1:${i + 1}`);

describe('the order in which processes get weights', () => {
  it('lets every process get them from one before it, and none send them to more than two beside the trainer', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), (samplers) => {
        const all = urls(samplers + 1);
        const orders = new WeightsOrders();
        orders.begin('run', one, all);
        const first = new Map<string, number>();
        for (const [i, url] of all.entries()) {
          const holders = orders.holdersFor('run', one, url, all[0]);
          if (i === 0) expect(holders).toEqual([]);
          for (const holder of holders) expect(all.indexOf(holder)).toBeLessThan(i);
          const [asked] = holders;
          if (asked !== undefined) first.set(asked, (first.get(asked) ?? 0) + 1);
        }
        for (const count of first.values()) expect(count).toBeLessThanOrEqual(2);
      }),
    );
  });

  it('puts a process that comes later behind the others, once', () => {
    const orders = new WeightsOrders();
    const [trainer = '', a = '', b = '', c = ''] = urls(4);
    orders.begin('run', one, [trainer, a, b]);
    expect(orders.holdersFor('run', one, c, trainer)).toEqual([a, trainer]);
    expect(orders.holdersFor('run', one, c, trainer)).toEqual([a, trainer]);
    expect(orders.holdersFor('run', one, undefined, trainer)).toEqual([a, trainer]);
  });

  it('begins again with other weights, and with what a run that was forgotten asks for', () => {
    const orders = new WeightsOrders();
    const [trainer = '', a = '', b = ''] = urls(3);
    orders.begin('run', one, [trainer, a]);
    expect(orders.holdersFor('run', two, b, trainer)).toEqual([trainer]);
    orders.forget('run');
    expect(orders.holdersFor('run', two, a, undefined)).toEqual([]);
    expect(orders.holdersFor('run', two, b, undefined)).toEqual([a]);
  });
});
