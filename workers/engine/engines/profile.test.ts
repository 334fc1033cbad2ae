/** Which runs an engine serves, by what it proved about its bits. */
import { describe, expect, it } from 'vitest';
import type { EngineFacts } from '../../../core/wire/engine-facts.ts';
import type { EngineProof } from '../../../core/wire/engine-proof.ts';
import { arithmeticOf } from '../../../native/arithmetic.ts';
import { queuesOf, requireServed, resolveProfile } from './profile.ts';

const proof = (compute: EngineProof['compute'], state: EngineProof['state']): EngineProof => ({
  ...{ compute, state, ms: 20 },
  profile: compute === 'fp32' ? 'det-1' : 'det-bf16-3-amx',
});
const ids = { fp32: 'det-1', bf16: 'det-bf16-3-amx' };
const facts = (deterministic: EngineFacts['deterministic'], ...proofs: EngineProof[]): EngineFacts => ({
  name: 'native',
  device: 'amx',
  build: 'b',
  computes: ['fp32', 'bf16'],
  auto: { deterministic: 'fp32', otherwise: 'bf16' },
  randomness: 'counter',
  deterministic,
  proofs,
});
const settings = { engine: 'native', compute: 'auto', deterministic: true, maxTokensPerMicroBatch: 100 } as const;

describe('an engine whose bits in fp32 are others', () => {
  const broken = facts({ bf16: ids.bf16 }, proof('fp32', 'refused'), proof('bf16', 'proved'));
  const profile = resolveProfile(settings, [facts(ids)]);

  it('takes no jobs of deterministic runs in fp32', () => {
    expect(queuesOf(broken)).toEqual(['native-any', 'det-bf16-3-amx']);
  });

  it('refuses them by name, when they start and when they continue', () => {
    const refused = { code: 'UnprovenBits', message: expect.stringContaining('other bits in fp32 than det-1 names') };
    expect(() => resolveProfile(settings, [broken])).toThrow(expect.objectContaining(refused));
    expect(() => requireServed(profile, [broken])).toThrow(expect.objectContaining(refused));
  });

  it('serves other runs', () => {
    const free = resolveProfile({ ...settings, deterministic: false }, [broken]);
    expect(free).toMatchObject({ compute: 'bf16', engine: 'native', device: 'amx' });
    requireServed(free, [broken]);
    expect(resolveProfile({ ...settings, compute: 'bf16' }, [broken]).id).toBe('det-bf16-3-amx');
  });
});

it('serves a processor without recorded bits under its own profile', () => {
  const unproved = facts(ids, proof('fp32', 'proved'), proof('bf16', 'unproved'));
  expect(queuesOf(unproved)).toEqual(['native-any', 'det-1', 'det-bf16-3-amx']);
});

it('names the flags that a person added to the build', () => {
  const own = facts({ ...ids, fp32: 'det-1-flags-12ab34cd' }, proof('fp32', 'proved'));
  expect(resolveProfile(settings, [own]).id).toBe('det-1-flags-12ab34cd');
  expect(() => requireServed(resolveProfile(settings, [facts(ids)]), [own])).toThrow(
    expect.objectContaining({ code: 'CannotReproduce' }),
  );
  const option = { compute: 'fp32', deterministic: true } as const;
  expect(arithmeticOf(option, { isa: 'avx2', addedFlags: '12ab34cd' })).toBe('1 flags 12ab34cd deterministic');
  expect(arithmeticOf(option, { isa: 'avx2', addedFlags: '' })).toBe('1 deterministic');
});

describe('a worker with two engines', () => {
  const other: EngineFacts = {
    name: 'other',
    device: 'gpu',
    build: 'o',
    computes: ['bf16'],
    auto: { deterministic: 'bf16', otherwise: 'bf16' },
    randomness: 'seeded',
    deterministic: {},
  };
  const both = [facts(ids), other];

  it('gives a run the profile of the engine that its recipe names', () => {
    const free = { ...settings, engine: 'other', deterministic: false };
    expect(resolveProfile(free, both)).toMatchObject({ id: 'any', engine: 'other', device: 'gpu', compute: 'bf16' });
    expect(both.flatMap(queuesOf)).toEqual(['native-any', 'det-1', 'det-bf16-3-amx', 'other-any']);
  });

  it('does not promise bits that an engine does not repeat', () => {
    expect(() => resolveProfile({ ...settings, engine: 'other' }, both)).toThrow(
      expect.objectContaining({
        code: 'CannotReproduce',
        message: 'the engine other does not repeat its bits in bf16',
      }),
    );
  });

  it('refuses the jobs of an engine that it lacks', () => {
    const profile = { ...resolveProfile({ ...settings, deterministic: false }, both), engine: 'torch' };
    expect(() => requireServed(profile, both)).toThrow(
      expect.objectContaining({
        code: 'OtherEngine',
        message: 'the run needs the engine torch; this worker has native and other',
      }),
    );
  });
});
