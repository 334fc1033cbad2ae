import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { median } from '../bench/clock.ts';
import { faultNames } from '../bench/measurements/faults.ts';
import { chooseRows } from '../bench/options.ts';
import { MEASUREMENTS } from '../bench/registry.ts';
import { coveredMs } from '../bench/run/intervals.ts';
import { builtFile } from '../infra/home.ts';
import { faults } from './recovery/pairs.ts';

interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly peer?: string;
  readonly peerValue?: number;
  readonly ratio?: number;
}

const folder = mkdtempSync(join(tmpdir(), 'petrel-bench-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the built bench on tiny shapes; its speeds mean nothing. */
async function bench(...words: string[]): Promise<{ readonly rows: Row[]; readonly text: string }> {
  const { stdout } = await promisify(execFile)(process.execPath, [builtFile('bench/main.js'), '--quick', ...words]);
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  return { rows: lines.map((line) => JSON.parse(line) as Row), text: stdout };
}

const namesOf = (only: readonly string[]) =>
  chooseRows(MEASUREMENTS, only).flatMap(({ rows }) => rows.map(({ name }) => name));

describe('the bench', () => {
  it('prints one JSON object per row of the engine, and nothing else with --json', async () => {
    const { rows, text } = await bench('--json', '--only', 'train.S,decode.S.b1,decode.S.b16,decode.S.ttft');
    expect(rows.map(({ name, unit }) => `${name} ${unit}`)).toEqual([
      'train.S.throughput tokens/s',
      'train.S.memory bytes',
      'decode.S.b1 tokens/s',
      'decode.S.b16 tokens/s',
      'decode.S.ttft ms',
    ]);
    for (const { value } of rows) expect(value).toBeGreaterThan(0);
    expect(text.trim().split('\n')).toHaveLength(rows.length);
  });

  it('times a run and the bare loop together, on a separate stack', async () => {
    const { rows } = await bench('--json', '--only', 'iteration,orchestration,eventloop');
    expect(rows.map(({ name }) => name)).toEqual([
      'iteration.rollout',
      'iteration.reward',
      'iteration.advantage',
      'iteration.update',
      'iteration.total',
      'orchestration.median',
      'orchestration.bare',
      'eventloop.p999.control',
      'eventloop.p999.worker',
    ]);
    for (const { value } of rows) expect(value).toBeGreaterThanOrEqual(0);
    const [median, bare] = ['orchestration.median', 'orchestration.bare'].map((name) =>
      rows.find((row) => row.name === name),
    );
    expect(median).toMatchObject({ peer: 'orchestration.bare', peerValue: bare?.value });
    expect(median?.ratio).toBeCloseTo((median?.value ?? 0) / (bare?.value ?? 0), 2);
  });

  it('times the start of runs with many rows, and watches every process of their stacks', async () => {
    const { rows } = await bench('--json', '--only', 'dataset.million');
    expect(rows.map(({ name }) => name)).toEqual(namesOf(['dataset.million']));
    for (const { name, value } of rows) {
      if (/start|tokenizer|memory/.test(name)) expect(value, name).toBeGreaterThan(0);
      expect(value, name).toBeGreaterThanOrEqual(0);
    }
    expect(rows.find(({ name }) => name === 'dataset.million.start.on')).toMatchObject({
      peer: 'dataset.million.tokenizer',
    });
  });

  it('measures the faults of the recovery suite in separate runs', async () => {
    expect(faultNames).toEqual(Object.keys(faults));
    const { rows } = await bench('--json', '--only', 'fault.trainer');
    expect(rows.map(({ name, unit }) => `${name} ${unit}`)).toEqual(['fault.trainer.back s', 'fault.trainer.longer s']);
    expect(rows[0]?.value).toBeGreaterThan(0);
  });

  it('measures objects and records in the store, with and without syncs, and cp', async () => {
    const { rows } = await bench('--json', '--only', 'store.folder');
    expect(rows.map(({ name, unit }) => `${name} ${unit}`)).toEqual([
      'store.folder.put MiB/s',
      'store.folder.put.unsynced MiB/s',
      'store.folder.blob ms',
      'store.folder.blob.unsynced ms',
      'store.folder.get MiB/s',
      'store.folder.cp MiB/s',
      'store.folder.creates records/s',
    ]);
    for (const { value } of rows) expect(value).toBeGreaterThan(0);
    expect(rows[0]).toMatchObject({ peer: 'store.folder.put.unsynced' });
  });

  it('ends with a table, and puts it between the markers of a document', async () => {
    const document = join(folder, 'figures.md');
    writeFileSync(document, '# Figures\n\n<!-- bench:begin -->\nold\n<!-- bench:end -->\n\nafter\n');
    const { text } = await bench('--only', 'train.S.throughput', '--write', document);
    const table = text.slice(text.indexOf('| row')).trim();
    expect(table).toMatch(/^\| row .*\| ratio \|\n\|-+\|.*\n\| train\.S\.throughput +\|/);
    const written = readFileSync(document, 'utf8');
    expect(written).toContain(table);
    expect(written).not.toContain('old');
    expect(written).toMatch(/^# Figures\n[\s\S]*\nafter\n$/);
  });

  it('refuses unknown names with a list of the known ones', async () => {
    await expect(bench('--only', 'decode.XL')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no such row; there are train\.S\.throughput/) as unknown,
    });
    await expect(bench('--peer', 'jax')).rejects.toMatchObject({ code: 2 });
  });
});

describe('rows', () => {
  it('have unique names', () => {
    const names = namesOf([]);
    expect(new Set(names).size).toBe(names.length);
  });

  it('are selected by name, pattern or prefix', () => {
    expect(namesOf(['train.M.memory'])).toEqual(['train.M.memory']);
    expect(namesOf(['decode.*.ttft'])).toEqual(['decode.S.ttft', 'decode.M.ttft', 'decode.R.ttft']);
    expect(namesOf(['decode.R', 'orchestration.median'])).toEqual([
      'decode.R.b1',
      'decode.R.b16',
      'decode.R.b64',
      'decode.R.b256',
      'decode.R.ttft',
      'orchestration.median',
    ]);
  });
});

describe('figures', () => {
  it('are medians', () => {
    expect([median([3, 1, 2]), median([4, 1, 2, 3]), median([5])]).toEqual([2, 2.5, 5]);
    expect(median([])).toBeNaN();
  });

  it('count time in which two jobs work only once', () => {
    expect(
      coveredMs([
        [10, 20],
        [15, 30],
        [40, 50],
        [41, 45],
      ]),
    ).toBe(30);
    expect(coveredMs([])).toBe(0);
  });
});
