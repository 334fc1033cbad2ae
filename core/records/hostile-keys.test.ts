/** Records are refused when their keys would remove objects of others. */
import { describe, expect, it } from 'vitest';
import { inputsEntry, retentionEntry, toStoredRetention } from './schema.ts';

const digest = 'a'.repeat(64);
const run = 'runs/learn-20260102-030405-0a1b';
const entry = {
  ...{ format: 1, runId: 'learn-20260102-030405-0a1b', n: 1, at: '', floor: 0, cleared: 0, pins: [] },
  ...{ condemned: [`${run}/blobs/${digest}`], condemnedAt: '', shared: [], verified: [] },
};

const hostile = [
  'link/.ssh/',
  `${run}/`,
  `${run}/blobs/`,
  `${run}/blobs/../terms/1/term.json`,
  `${run}/terms/1/term.json`,
  `${run}/run.json`,
  `runs/other-20260102-030405-0a1b/terms/`,
  `runs/other-20260102-030405-0a1b/blobs/${digest}`,
  `/etc/${digest}`,
];

describe('a retention entry', () => {
  it('names blobs and manifests of its own run', () => {
    const manifests = [`${run}/weights/${digest}.json`, `${run}/checkpoints/12-${digest}.json`];
    const full = { ...entry, condemned: [...entry.condemned, ...manifests], verified: [manifests[1]] };
    expect(retentionEntry.safeParse(full).success).toBe(true);
  });

  it('is stored under its original names', () => {
    const strays = { status: 1, keys: [`${run}/blobs/${digest}`], since: '', removing: true };
    const read = retentionEntry.parse({ ...entry, strays });
    expect(read).toMatchObject({ marked: entry.condemned, orphans: strays });
    expect(toStoredRetention(read)).toEqual({ ...entry, strays });
  });

  it.each(hostile)('is refused with %s', (key) => {
    const strays = { status: 1, keys: [key], since: '', removing: true };
    for (const change of [{ condemned: [key] }, { shared: [key] }, { verified: [key] }, { strays }])
      expect(retentionEntry.safeParse({ ...entry, ...change }).success).toBe(false);
  });
});

it('an entry of inputs is read without names that are no model or dataset', () => {
  const unnamed = ['models/llama-3-8b/', `models/${digest}/`, '../'].map((folder) => ({ folder, since: '' }));
  const read = inputsEntry.parse({
    format: 1,
    n: 1,
    unnamed,
    removing: ['datasets/', `datasets/${digest}/`, ...hostile],
  });
  expect(read.unnamed.map(({ folder }) => folder)).toEqual([`models/${digest}/`]);
  expect(read.removing).toEqual([`datasets/${digest}/`]);
});
