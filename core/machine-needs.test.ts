import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { machineNeeds, meets, needsText, needsWord, queueWithNeeds } from './machine-needs.ts';
import type { MachineNeeds } from './machine-needs.ts';

const h100 = { name: 'NVIDIA H100 80GB HBM3', gib: 79.6 };
const a10 = { name: 'NVIDIA A10G', gib: 22.5 };
const machine = { pool: 'gpus', gpus: [h100, h100, a10], roundTripMs: 12.5 };

describe('a machine', () => {
  it.each<readonly [MachineNeeds, boolean]>([
    [{}, true],
    [{ pools: ['lab', 'gpus'] }, true],
    [{ pools: ['lab'] }, false],
    [{ gpu: { count: 3 } }, true],
    [{ gpu: { count: 4 } }, false],
    [{ gpu: { count: 2, memory_gib: 80 } }, true],
    [{ gpu: { count: 3, memory_gib: 80 } }, false],
    [{ gpu: { count: 2, model: 'h100' } }, true],
    [{ gpu: { count: 1, model: 'H10080GB' } }, true],
    [{ gpu: { count: 1, model: 'H200' } }, false],
    [{ gpu: { count: 1, memory_gib: 40, model: 'A10G' } }, false],
    [{ pools: ['gpus'], gpu: { count: 1, model: 'A10G' } }, true],
    [{ within_ms: 20 }, true],
    [{ within_ms: 12, pools: ['gpus'] }, false],
  ])('meets %o: %s', (needs, does) => {
    expect(meets(needs, machine)).toBe(does);
  });

  it('that has not said its round trip is believed to be near', () => {
    expect(meets({ within_ms: 1 }, { pool: 'cpu', gpus: [] })).toBe(true);
  });

  it('without GPUs meets what asks for none', () => {
    expect(meets({ gpu: { count: 1 } }, { pool: 'cpu', gpus: [] })).toBe(false);
    expect(meets({ pools: ['cpu'] }, { pool: 'cpu', gpus: [] })).toBe(true);
  });
});

describe('a queue', () => {
  const pool = fc.stringMatching(/^[a-z][a-z0-9-]{0,6}$/);
  const needs = fc.record(
    {
      pools: fc.uniqueArray(pool, { minLength: 1, maxLength: 3 }),
      gpu: fc.record(
        {
          count: fc.integer({ min: 1, max: 9 }),
          memory_gib: fc.constantFrom(16, 80, 79.5),
          model: fc.stringMatching(/^[A-Z0-9]{1,4}$/),
        },
        { requiredKeys: ['count'] },
      ),
      within_ms: fc.constantFrom(1, 10, 0.5),
    },
    { requiredKeys: [] },
  );

  it('is the same for the same needs, another for others, and one word of a subject', () => {
    fc.assert(
      fc.property(needs, needs, (one, other) => {
        const [a, b] = [machineNeeds.parse(one), machineNeeds.parse(other)].map((each) => JSON.stringify(sorted(each)));
        expect(needsWord(one) === needsWord(other)).toBe(a === b);
        expect(queueWithNeeds('native-any', one)).toMatch(/^[\w-]+$/);
      }),
    );
    expect(queueWithNeeds('native-any', {})).toBe('native-any');
    expect(queueWithNeeds('any', undefined)).toBe('any');
  });

  const sorted = ({ pools, ...rest }: MachineNeeds) => ({ ...rest, ...(pools && { pools: [...pools].sort() }) });
});

it('is said in words', () => {
  expect(needsText({ pools: ['a', 'b'], gpu: { count: 2, memory_gib: 80, model: 'H100' } })).toBe(
    ' in the pool a or b with 2 GPUs H100 of 80 GiB',
  );
  expect(needsText({ gpu: { count: 1 } })).toBe(' with a GPU');
  expect(needsText()).toBe('');
});
