/**
 * The engine proves its bits: the probe has the recorded digests, in little time, and names nothing that it cannot
 * prove.
 */
import { expect, it } from 'vitest';
import { deterministicProfile } from '../core/records/profile-ids.ts';
import { arithmeticVersions, engineInfo, engineProofs } from './index.ts';
import { probeDigest } from './proof/probe.ts';
import { recordedProbes } from './proof/recorded.ts';
import { classNames, printedOf } from './testing/bits.ts';

it('proves every compute type of this processor', () => {
  const proofs = engineProofs();
  expect(proofs.map(({ compute }) => compute)).toEqual(engineInfo().bf16 ? ['fp32', 'bf16'] : ['fp32']);
  for (const { state } of proofs) expect(state).toBe('proved');
});

it('has one digest in fp32, whatever the processor, and others in bf16', () => {
  for (const printed of classNames.map(printedOf)) {
    for (const [profile, digest] of Object.entries(printed?.probes ?? {}))
      expect(digest, profile).toBe(recordedProbes[profile]);
  }
  expect(new Set(Object.values(recordedProbes)).size).toBe(Object.keys(recordedProbes).length);
});

it('has records of the present versions', () => {
  const isas = ['avx512_bf16', 'amx'];
  const profiles = [
    deterministicProfile('fp32', arithmeticVersions.fp32, 'avx2'),
    ...isas.map((isa) => deterministicProfile('bf16', arithmeticVersions.bf16, isa)),
  ];
  expect(Object.keys(recordedProbes)).toEqual(expect.arrayContaining(profiles));
});

it('gives one digest again and again', () => {
  expect(probeDigest('fp32')).toBe(probeDigest('fp32'));
});
