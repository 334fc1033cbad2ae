import { expect, it } from 'vitest';
import { MemoryPlan } from './memory-plan.ts';

const opened = (plan: MemoryPlan, bytes: number) => plan.open(bytes, async () => ({ bytes }));

it('a model that does not fit beside the others is refused with what it needs, and fits when one is released', async () => {
  const plan = new MemoryPlan(100 * 2 ** 20);
  const policy = await opened(plan, 70 * 2 ** 20);
  await expect(opened(plan, 40 * 2 ** 20)).rejects.toMatchObject({
    kind: 'unfit',
    code: 'TooLittleMemory',
    message: 'the model needs 40 MiB of memory; this worker has 100 MiB, of which 70 MiB are in use',
  });
  plan.release(policy);
  await opened(plan, 40 * 2 ** 20);
});

it('a model counts while it is made, and no longer when that failed', async () => {
  const plan = new MemoryPlan(100);
  let fail = (_: Error): void => {};
  const making = plan.open(80, () => new Promise<object>((_, reject) => (fail = reject)));
  await expect(opened(plan, 40)).rejects.toMatchObject({ code: 'TooLittleMemory' });
  fail(new Error('no file'));
  await expect(making).rejects.toThrow('no file');
  await opened(plan, 100);
});

it('a cache gets what it wants, but no more than its share and what is left', async () => {
  const plan = new MemoryPlan(100);
  const [policy, other] = [await opened(plan, 40), await opened(plan, 30)];
  expect(plan.cacheOf(policy, 10, 1 / 4)).toBe(10);
  expect(plan.cacheOf(policy, 90, 1 / 4)).toBe(25);
  expect(plan.cacheOf(other, 90, 1 / 4)).toBe(5);
  plan.release(policy);
  expect(plan.cacheOf(other, 90, 1 / 4)).toBe(25);
});
