import { describe, expect, test } from 'vitest';
import { compareOutcome } from './compare.ts';
import { runFile } from './run.ts';
import type { GoldenFile } from './types.ts';

const loose = { abs: 1e-3, rel: 1e-3 };

describe('comparison with the reference', () => {
  test('accepts a difference up to abs + rel·|want| and reports the largest with its place', () => {
    const { differences, maxAbs } = compareOutcome({ a: [[1, 2.0009]] }, { a: [[1, 2]] }, loose);
    expect(differences).toEqual([]);
    expect(maxAbs.where).toBe('a.0.1');
    expect(compareOutcome({ a: 1.0021 }, { a: 1 }, loose).differences).toHaveLength(1);
  });

  test('matches NaN and infinities by name, in typed arrays too', () => {
    const got = { x: Float64Array.of(NaN, Infinity, -Infinity) };
    expect(compareOutcome(got, { x: ['NaN', 'Infinity', '-Infinity'] }, loose).differences).toEqual([]);
    expect(compareOutcome({ x: 0 }, { x: 'NaN' }, loose).differences).toHaveLength(1);
    expect(compareOutcome({ x: 1 }, { x: 'Infinity' }, loose).differences).toHaveLength(1);
    expect(compareOutcome({ x: NaN }, { x: 1 }, loose).differences).toHaveLength(1);
  });

  test('takes 0 for a NaN gradient only where the mask is 0', () => {
    const inputs = { response_mask: [[1, 0]] };
    expect(compareOutcome({ grad_x: [[1, 0]] }, { grad_x: [[1, 'NaN']] }, loose, inputs).differences).toEqual([]);
    expect(compareOutcome({ grad_x: [[0, 0]] }, { grad_x: [['NaN', 0]] }, loose, inputs).differences).toHaveLength(1);
  });

  test('fails on a missing field, a missing key, an extra key inside a field, a wrong length and a wrong text', () => {
    const want = { a: { k: 1 }, b: [1, 2], c: 'text' };
    const good = { a: { k: 1 }, b: [1, 2], c: 'text', extra: 1 };
    expect(compareOutcome(good, want, loose).differences).toEqual([]);
    for (const bad of [
      { a: { k: 1 }, b: [1, 2] },
      { ...good, a: {} },
      { ...good, a: { k: 1, z: 2 } },
      { ...good, b: [1] },
      { ...good, c: 'Text' },
    ]) {
      expect(compareOutcome(bad, want, loose).differences).toHaveLength(1);
    }
  });

  test('uses the tolerance of the innermost named field', () => {
    const tolerance = { abs: 1, rel: 0, fields: { sum: 0.01 } };
    expect(compareOutcome({ p: { w: { sum: 1.1 } } }, { p: { w: { sum: 1 } } }, tolerance).differences).toHaveLength(1);
    expect(compareOutcome({ p: { w: { l2: 1.1 } } }, { p: { w: { l2: 1 } } }, tolerance).differences).toEqual([]);
  });
});

describe('running a file', () => {
  const file: GoldenFile = {
    family: 'f',
    name: 'n',
    tolerance: { abs: 0, rel: 0 },
    cases: [
      { name: 'right', inputs: {}, expected: { x: 1 } },
      { name: 'wrong', inputs: {}, expected: { x: 2 } },
      { name: 'refused', inputs: { refuse: 1 }, expected: { error: 'ValueError' } },
      { name: 'should be refused', inputs: {}, expected: { error: 'ValueError' } },
      { name: 'optional', inputs: {}, expected: { x: 2 }, required: false },
      { name: 'skipped', inputs: {}, skip: 'crashes' },
    ],
  };
  const evaluator = {
    family: 'f',
    handles: () => true,
    evaluate: async (testCase: { inputs: Readonly<Record<string, unknown>> }) => {
      if (testCase.inputs['refuse'] === 1) throw new Error('refused');
      return { got: { x: 1 } };
    },
  };
  const statuses = async (evaluators: readonly (typeof evaluator)[]) =>
    (await runFile({ label: 'f/n', folder: '.', file }, evaluators)).cases.map((result) => result.status);

  test('counts refusals as passes where the reference refuses, and optional cases never as failures', async () => {
    expect(await statuses([evaluator])).toEqual(['passed', 'failed', 'passed', 'failed', 'optional-failed', 'skipped']);
  });

  test('counts every required case of a file that nobody evaluates as failed', async () => {
    expect(await statuses([])).toEqual(['failed', 'failed', 'failed', 'failed', 'optional-failed', 'skipped']);
  });
});
