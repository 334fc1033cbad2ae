/** The arithmetic of a run that is resumed with another engine. */
import { describe, expect, it } from 'vitest';
import type { Head } from '../../log/run/run-log.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import type { EngineFacts } from '../../core/wire/engine-facts.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { chosenArithmetic, engineText, refuseLongerShares } from './engine-term.ts';

const native: EngineFacts = {
  name: 'native',
  device: 'avx2',
  build: 'n',
  computes: ['fp32'],
  auto: { deterministic: 'fp32', otherwise: 'fp32' },
  deterministic: { fp32: 'det-1' },
  randomness: 'counter',
};
const torch: EngineFacts = {
  ...native,
  ...{ name: 'torch', build: 't', computes: ['fp32', 'bf16'], deterministic: { bf16: 'torch-bf16' } },
  naming: 'lineage',
};
const trainers = [{ engines: [native] }, { engines: [torch] }] as unknown as readonly Presence[];
const profile: NumericProfile = {
  ...{ id: 'any', engine: 'torch', device: 'cpu', build: 'old', compute: 'bf16', deterministic: false },
  ...{ maxTokensPerMicroBatch: 64, ranks: 2, naming: 'lineage', blockHash: 'blake3' },
};
const undivided = {
  ulysses_sequence_parallel_size: 1,
  tensor_model_parallel_size: 1,
  expert_model_parallel_size: 1,
  cpu_offload: false,
  state_dtype: 'fp32' as const,
};
const chosen = (some: object, engine: 'native' | 'torch', ranks: number) =>
  chosenArithmetic({ ...profile, ...some }, { ...undivided, engine, fsdp_size: ranks }, trainers);

it('is the run’s own where nothing changes', () => {
  expect(chosen({}, 'torch', 2)).toBeUndefined();
});

it('has another number of processes, another engine, and names its states as that one does', () => {
  expect(chosen({}, 'torch', 3)).toEqual({ ...profile, device: 'avx2', build: 't', ranks: 3 });
  const { ranks: _, naming: __, ...alone } = profile;
  expect(chosen({}, 'native', 1)).toEqual({
    ...alone,
    ...{ engine: 'native', device: 'avx2', build: 'n', compute: 'fp32' },
  });
});

it('keeps the promise of a run’s bits, or is refused', () => {
  const { naming: _, ...bits } = { ...profile, id: 'det-1', deterministic: true };
  expect(chosenArithmetic(bits, { ...undivided, engine: 'torch', fsdp_size: 1 }, trainers)).toMatchObject({
    id: 'torch-bf16',
  });
  expect(chosenArithmetic(bits, { ...undivided, engine: 'native', fsdp_size: 1 }, trainers)).toMatchObject({
    id: 'det-1',
  });
  const inFp32 = { ...bits, engine: 'native', compute: 'fp32' as const };
  expect(() => chosenArithmetic(inFp32, { ...undivided, engine: 'torch', fsdp_size: 1 }, trainers)).toThrow(
    /does not repeat its bits/,
  );
});

it('of an engine that no trainer has is refused with what to install', () => {
  const without = [{ engines: [native] }] as unknown as readonly Presence[];
  const refused = () =>
    chosenArithmetic({ ...profile, engine: 'native' }, { ...undivided, engine: 'torch', fsdp_size: 1 }, without);
  expect(refused).toThrow('no trainer has the engine torch; they have native');
});

describe('ranks that share', () => {
  const divided = (trainer: object, some: object = {}) =>
    chosenArithmetic({ ...profile, ...some }, { ...undivided, engine: 'torch', fsdp_size: 2, ...trainer }, trainers);

  it('are another arithmetic, and their own again where they stop', () => {
    const sequence = { ulysses_sequence_parallel_size: 2 };
    expect(divided(sequence)?.division).toEqual({ sequence: 2 });
    expect(divided(sequence, { division: { sequence: 2 } })).toBeUndefined();
    expect(divided({}, { division: { sequence: 2 } })).not.toHaveProperty('division');
    expect(divided({ cpu_offload: true })?.division).toEqual({ offload: true });
    expect(divided({ state_dtype: 'bf16' })?.division).toEqual({ state: 'bf16' });
  });

  it('are named, and do not take over passes that more of them shared', () => {
    const head = { profile: { ...profile, maxTokensPerMicroBatch: 4096, division: { sequence: 2 } }, position: 7 };
    const change = { profile: divided({}, { division: { sequence: 2 } }) ?? profile, from: 5 };
    expect(engineText(head as unknown as Head, change, 7)).toContain(
      'torch in 2 processes in place of torch in 2 processes (2 share tokens)',
    );
    const refused = () => refuseLongerShares(head as unknown as Head, change, 7);
    expect(refused).toThrow(/iterations 6 to 7 would be applied again, in passes of up to 4096 tokens/);
    expect(() => refuseLongerShares(head as unknown as Head, change, 5)).not.toThrow();
    const more = { ...change, profile: { ...profile, division: { sequence: 4 } } };
    expect(() => refuseLongerShares(head as unknown as Head, more, 7)).not.toThrow();
  });
});
