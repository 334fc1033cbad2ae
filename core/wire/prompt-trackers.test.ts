import { expect, test } from 'vitest';
import type { Counters } from '../records/schema.ts';
import {
  decodeTrackers,
  encodeTrackers,
  partsToMerge,
  responsesBlob,
  trackersBlob,
  withTrackers,
} from './prompt-trackers.ts';
import type { TrackedPrompt } from './prompt-trackers.ts';

const one = (part: number | null): TrackedPrompt => ({ alpha: 1.5, beta: 0.25, responses: 3, part });
const digest = (letter: string) => letter.repeat(64);
const counters = (controllers: Counters['controllers']): Counters => ({
  cursor: 0,
  badSteps: 0,
  optimizerSteps: {},
  controllers,
});
const origin = { iteration: 7, parentState: 'p' };

test('trackers come back as they were stored, and damaged ones are refused', () => {
  const trackers = new Map([
    [9, one(2)],
    [4, one(null)],
  ]);
  const stored = encodeTrackers(trackers, origin);
  expect(stored.rows.map(([row]) => row)).toEqual([4, 9]);
  expect(decodeTrackers(JSON.parse(JSON.stringify(stored)), 'here')).toEqual(trackers);
  expect(() => decodeTrackers({ ...stored, rows: [[1, 2]] }, 'here')).toThrow(/no trackers of prompts/);
});

test('controllers name the responses that are still the last ones, and keep those of others', () => {
  const before = counters({
    klCoef: 0.5,
    spo: { blob: digest('a') },
    'spo.1': { blob: digest('b') },
    'spo.2': { blob: digest('c') },
  });
  const after = withTrackers(
    before,
    new Map([
      [1, one(2)],
      [2, one(3)],
    ]),
    {
      iteration: 3,
      trackers: digest('d'),
      responses: digest('e'),
    },
  );
  expect(after).toEqual({
    klCoef: 0.5,
    spo: { blob: digest('d') },
    'spo.2': { blob: digest('c') },
    'spo.3': { blob: digest('e') },
  });
  expect(trackersBlob(counters(after))).toBe(digest('d'));
  expect(responsesBlob(counters(after), 3)).toBe(digest('e'));
  expect(() => responsesBlob(counters(after), 1)).toThrow(/do not name this blob/);
  expect(trackersBlob(counters({ klCoef: 0 }))).toBeUndefined();
});

test('responses of 16 iterations are merged', () => {
  const trackers = (parts: number) => new Map(Array.from({ length: parts }, (_, i) => [i, one(i)]));
  expect(partsToMerge(trackers(15)).size).toBe(0);
  expect(partsToMerge(trackers(16)).size).toBe(16);
  expect(partsToMerge(new Map([[1, one(null)]])).size).toBe(0);
});
