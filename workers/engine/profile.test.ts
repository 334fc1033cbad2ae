/** Which runs an engine serves, by what it proved about its bits. */
import { describe, expect, it } from 'vitest';
import type { EngineProof } from '../../core/wire/engine-proof.ts';
import { arithmeticOf } from '../../native/arithmetic.ts';
import { engineOptionsOf, profilesOf, resolveProfile } from './profile.ts';
import type { EngineFacts } from './profile.ts';

const proof = (compute: EngineProof['compute'], state: EngineProof['state']): EngineProof => ({
  ...{ compute, state, ms: 20 },
  profile: compute === 'fp32' ? 'det-1' : 'det-bf16-3-amx',
});
const facts = (...proofs: EngineProof[]): EngineFacts => ({ isa: 'amx', bf16: true, build: 'b', proofs });
const settings = { compute: 'auto', deterministic: true, maxTokensPerMicroBatch: 100 } as const;

describe('an engine whose bits in fp32 are others', () => {
  const broken = facts(proof('fp32', 'refused'), proof('bf16', 'proved'));
  const profile = resolveProfile(settings, facts());

  it('offers no profile of deterministic runs in fp32', () => {
    expect(profilesOf(broken)).toEqual(['any', 'det-bf16-3-amx']);
  });

  it('refuses them by name, when they start and when they continue', () => {
    const refused = { code: 'UnprovenBits', message: expect.stringContaining('other bits in fp32 than det-1 names') };
    expect(() => resolveProfile(settings, broken)).toThrow(expect.objectContaining(refused));
    expect(() => engineOptionsOf(profile, broken, 1)).toThrow(expect.objectContaining(refused));
  });

  it('serves other runs', () => {
    const free = { ...settings, deterministic: false };
    expect(engineOptionsOf(resolveProfile(free, broken), broken, 1)).toMatchObject({ compute: 'bf16' });
    expect(resolveProfile({ ...settings, compute: 'bf16' }, broken).id).toBe('det-bf16-3-amx');
  });
});

it('serves a processor without recorded bits under its own profile', () => {
  const unproved = facts(proof('fp32', 'proved'), proof('bf16', 'unproved'));
  expect(profilesOf(unproved)).toEqual(['any', 'det-1', 'det-bf16-3-amx']);
});

it('names the flags that a person added to the build', () => {
  const own = { ...facts(proof('fp32', 'proved')), addedFlags: '12ab34cd' };
  expect(resolveProfile(settings, own).id).toBe('det-1-flags-12ab34cd');
  expect(() => engineOptionsOf(resolveProfile(settings, facts()), own, 1)).toThrow(
    expect.objectContaining({ code: 'CannotReproduce' }),
  );
  const option = { compute: 'fp32', deterministic: true } as const;
  expect(arithmeticOf(option, { isa: 'avx2', addedFlags: '12ab34cd' })).toBe('1 flags 12ab34cd deterministic');
  expect(arithmeticOf(option, { isa: 'avx2', addedFlags: '' })).toBe('1 deterministic');
});
