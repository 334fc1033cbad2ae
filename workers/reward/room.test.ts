import { describe, expect, it } from 'vitest';
import { RewardRoom } from './room.ts';

const size = { slots: 2, most: 4, patienceMs: 20 };

/** A job that runs until `end` is called. */
async function begin(room: RewardRoom, runId: string): Promise<() => Promise<void>> {
  await room.enter();
  expect(room.refuse(runId)).toBeUndefined();
  let finish = (): void => {};
  const work = room.hold(runId, () => new Promise<void>((resolve) => (finish = resolve)));
  return async () => {
    finish();
    await work;
    room.leave();
  };
}

describe('slots for scoring', () => {
  it('can all be used by one run while no other run waits', async () => {
    const room = new RewardRoom(size);
    await begin(room, 'a');
    await begin(room, 'a');
    await room.enter();
    expect(room.refuse('a')).toBe('waiting for a reward slot: all 2 are busy with run a');
  });

  it('are extended when all of them are held: each other run gets one more', async () => {
    const room = new RewardRoom(size);
    await begin(room, 'a');
    await begin(room, 'a');
    await begin(room, 'b');
    await begin(room, 'c');
    let entered = false;
    const next = room.enter().then(() => (entered = true));
    await new Promise((resolve) => setTimeout(resolve, 3 * size.patienceMs));
    expect(entered).toBe(false); // the maximum is reached
    room.leave();
    await next;
    expect(room.refuse('b')).toContain('busy with run a, b, c');
  });

  it('are not extended while jobs end regularly', async () => {
    let now = 0;
    const room = new RewardRoom(size, () => now);
    const ends = [await begin(room, 'a'), await begin(room, 'a')];
    let entered = false;
    const next = room.enter().then(() => (entered = true));
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setTimeout(resolve, 2));
    expect(entered).toBe(false);
    now += size.patienceMs - 1;
    await ends[0]?.();
    await next;
    expect(room.refuse('a')).toBeUndefined(); // in place of the job that ended
  });
});
