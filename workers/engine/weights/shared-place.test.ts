import { describe, expect, it } from 'vitest';
import { SharedPlace } from './shared-place.ts';

function opener(): { readonly wait: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const wait = new Promise<void>((resolve) => (open = resolve));
  return { wait, open };
}

describe('a place for one resource', () => {
  it('creates it once for simultaneous requests', async () => {
    const place = new SharedPlace<number>();
    let made = 0;
    const answers = await Promise.all(
      [1, 2, 3].map(() =>
        place.use(
          'a',
          async () => ++made,
          async (thing) => thing,
        ),
      ),
    );
    expect(answers).toEqual([1, 1, 1]);
  });

  it('replaces it only when it is out of use, and passes the old one on', async () => {
    const place = new SharedPlace<string>();
    const gate = opener();
    const seen: (string | undefined)[] = [];
    const first = place.use(
      'a',
      async () => 'A',
      () => gate.wait,
    );
    const second = place.use(
      'b',
      async (before) => {
        seen.push(before);
        return 'B';
      },
      async (thing) => void seen.push(thing),
    );
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([]);
    gate.open();
    await Promise.all([first, second]);
    expect(seen).toEqual(['A', 'B']);
  });

  it('gives it away once nobody uses it, and then makes a new one', async () => {
    const place = new SharedPlace<string>();
    const gate = opener();
    const used = place.use(
      'a',
      async () => 'A',
      () => gate.wait,
    );
    const taken = place.taken();
    gate.open();
    expect(await taken).toBe('A');
    await used;
    expect(await place.taken()).toBeUndefined();
    expect(
      await place.use(
        'a',
        async (before) => before ?? 'new',
        async (thing) => thing,
      ),
    ).toBe('new');
  });

  it('tries again after a failed creation', async () => {
    const place = new SharedPlace<string>();
    await expect(
      place.use(
        'a',
        () => Promise.reject(new Error('absent')),
        async (thing) => thing,
      ),
    ).rejects.toThrow('absent');
    expect(
      await place.use(
        'a',
        async () => 'A',
        async (thing) => thing,
      ),
    ).toBe('A');
  });
});
