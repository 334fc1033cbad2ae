import { describe, expect, it } from 'vitest';
import { PrintLimit } from './prints.ts';

describe('the output of a scorer', () => {
  it('is kept up to a burst, then at a rate per second, with a count of dropped lines', () => {
    let now = 0;
    const written: string[] = [];
    const limit = new PrintLimit(
      (text) => written.push(text),
      () => now,
    );
    for (let i = 0; i < 1_000; i++) limit.print(`line ${i}`);
    expect(written).toHaveLength(200);
    now = 100;
    limit.print('later');
    expect(written.slice(200)).toEqual(['scorer: 800 lines were left out here; at most 20 a second are kept', 'later']);
    for (let i = 0; i < 5; i++) limit.print('again');
    limit.flush();
    expect(written.slice(202)).toEqual(['again', 'scorer: 4 lines were left out here; at most 20 a second are kept']);
  });
});
