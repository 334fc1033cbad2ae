// @module-tag long
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { median } from '../bench/clock.ts';
import { describeLowering, lowerBothSides } from '../bench/lowering.ts';
import { operationsOf, trainingProducts, weightBytes } from '../bench/matrix-products.ts';
import { faultNames } from '../bench/measurements/faults.ts';
import { chooseRows } from '../bench/options.ts';
import { bestClass, parseProcessor } from '../bench/processor.ts';
import { MEASUREMENTS } from '../bench/registry.ts';
import { coveredMs } from '../bench/run/intervals.ts';
import { withShare } from '../bench/share.ts';
import { sizeNames, sizeOf } from '../bench/sizes.ts';
import { renderTable } from '../bench/table.ts';
import { builtFile } from '../infra/home.ts';
import { faults } from './recovery/pairs.ts';

interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly peer?: string;
  readonly peerValue?: number;
  readonly ratio?: number;
  readonly limit?: string;
  readonly bound?: number;
  readonly share?: number;
}

const folder = mkdtempSync(join(tmpdir(), 'petrel-bench-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the built bench on tiny shapes; its speeds mean nothing. */
async function bench(...words: string[]): Promise<{ rows: Row[]; text: string; errors: string }> {
  const args = [builtFile('bench/main.js'), '--quick', ...words];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args);
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  return { rows: lines.map((line) => JSON.parse(line) as Row), text: stdout, errors: stderr };
}

const namesOf = (only: readonly string[]) =>
  chooseRows(MEASUREMENTS, only).flatMap(({ rows }) => rows.map(({ name }) => name));

describe('the bench', () => {
  it('prints one JSON object per row of the engine, and nothing else with --json', async () => {
    const { rows, text } = await bench('--json', '--only', 'train.S,decode.S.b1,decode.S.b16,decode.S.ttft');
    expect(rows.map(({ name, unit }) => `${name} ${unit}`)).toEqual([
      'train.S.throughput tokens/s',
      'train.S.groups tokens/s',
      'train.S.oneThread tokens/s',
      'train.S.memory bytes',
      'decode.S.b1 tokens/s',
      'decode.S.b16 tokens/s',
      'decode.S.ttft ms',
    ]);
    for (const { value } of rows) expect(value).toBeGreaterThan(0);
    expect(text.trim().split('\n')).toHaveLength(rows.length);
  });

  it("prints the machine's own peak, and other rows as a share of it", { tags: ['long'] }, async () => {
    const { rows } = await bench(
      '--json',
      '--only',
      'peak.rate,peak.read,peak.gemm.S,train.S.throughput,prefill.S,decode.S.b16',
    );
    expect(rows.map(({ name, unit }) => `${name} ${unit}`)).toEqual([
      'peak.rate GFLOP/s',
      'peak.read bytes/s',
      'peak.gemm.S.train tokens/s',
      'peak.gemm.S.prefill tokens/s',
      'peak.gemm.S.b1 tokens/s',
      'peak.gemm.S.b16 tokens/s',
      'peak.gemm.S.b64 tokens/s',
      'peak.gemm.S.b256 tokens/s',
      'train.S.throughput tokens/s',
      'prefill.S tokens/s',
      'decode.S.b16 tokens/s',
    ]);
    for (const { value } of rows) expect(value).toBeGreaterThan(0);
    const named = (name: string) => rows.find((row) => row.name === name);
    expect(named('train.S.throughput')).toMatchObject({
      limit: 'peak.gemm.S.train',
      bound: named('peak.gemm.S.train')?.value,
    });
    expect(named('prefill.S')?.limit).toBe('peak.gemm.S.prefill');
    expect(named('decode.S.b16')?.limit).toMatch(/^peak\.(read|gemm\.S\.b16)$/);
    for (const { value, bound, share } of rows.slice(-3)) expect(share).toBeCloseTo(value / (bound ?? 0), 2);
    for (const { share } of rows.slice(0, -3)) expect(share).toBeUndefined();
  });

  it('times a whole update and the digest in it', { tags: ['long'] }, async () => {
    const { rows } = await bench('--json', '--only', 'update.S');
    const [total, digest] = rows;
    expect(rows.map(({ name, unit }) => `${name} ${unit}`)).toEqual(['update.S.total s', 'update.S.digest s']);
    expect(digest).toMatchObject({ peer: 'update.S.total', peerValue: total?.value });
    expect(digest?.value).toBeGreaterThan(0);
    expect(total?.value).toBeGreaterThan(digest?.value ?? 0);
  });

  it('lowers the engine and its peak with --class, and says so above the table', { tags: ['long'] }, async () => {
    const { errors, rows } = await bench('--class', 'avx2', '--only', 'peak.rate,train.S.throughput');
    expect(rows).toHaveLength(2);
    expect(errors).toContain('class avx2, fp32');
    const processor = parseProcessor(readFileSync('/proc/cpuinfo', 'utf8'));
    expect(errors).toContain(`family ${processor?.family}, model ${processor?.model}, stepping ${processor?.stepping}`);
    const lower = processor !== undefined && bestClass(processor) !== 'avx2';
    expect(errors.includes('lowered: both sides (PETREL_ISA=avx2, ONEDNN_MAX_CPU_ISA=AVX2')).toBe(lower);
    await expect(bench('--class', 'sse4', '--only', 'peak.rate')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--class sse4: expected avx2, avx512 or avx512_bf16/) as unknown,
    });
  });

  it('times a run and the bare loop together, on a separate stack', { tags: ['long'] }, async () => {
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

  it('times the start of runs with many rows, and watches every process of their stacks', {
    tags: ['long'],
  }, async () => {
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

  it('times the plan and the start of runs with Parquet and JSONL', { tags: ['long'] }, async () => {
    const { rows } = await bench('--json', '--only', 'dataset.plan');
    expect(rows.map(({ name }) => name)).toEqual(namesOf(['dataset.plan']));
    for (const { name, value } of rows) expect(value, name).toBeGreaterThan(0);
  });

  it('measures the faults of the recovery suite in separate runs', { tags: ['long'] }, async () => {
    expect(faultNames).toEqual(Object.keys(faults));
    const { rows } = await bench('--json', '--only', 'fault.trainer');
    expect(rows.map(({ name, unit }) => `${name} ${unit}`)).toEqual(['fault.trainer.back s', 'fault.trainer.longer s']);
    expect(rows[0]?.value).toBeGreaterThan(0);
  });

  it('measures objects and records in the store, with and without syncs, and cp', { tags: ['long'] }, async () => {
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

  it('puts it between the markers of its class, when the document has them', { tags: ['long'] }, async () => {
    const document = join(folder, 'classes.md');
    const markers = (name: string) => `<!-- bench:begin${name} -->\nold${name}\n<!-- bench:end${name} -->\n`;
    writeFileSync(document, ['', ' avx2', ' avx512'].map(markers).join(''));
    await bench('--only', 'peak.read', '--class', 'avx2', '--write', document);
    const written = readFileSync(document, 'utf8');
    expect(written).toMatch(/old\n[\s\S]*bench:begin avx2 -->\n\n[^\n]*class avx2[\s\S]*peak\.read[\s\S]*old avx512/);
    expect(written).not.toContain('old avx2');
  });

  it('refuses unknown names with a list of the known ones', async () => {
    await expect(bench('--only', 'decode.XL')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no such row; there are peak\.rate/) as unknown,
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

describe('the machine', () => {
  const cpuinfo = [
    'processor\t: 0',
    'vendor_id\t: GenuineIntel',
    'cpu family\t: 6',
    'model\t\t: 143',
    'model name\t: Intel Xeon',
    'stepping\t: 8',
    'flags\t\t: fpu avx2 avx512f avx512_bf16 amx_bf16 avx512_fp16 amx_tile',
    '',
    'processor\t: 1',
  ].join('\n');

  it('is described by family, model, stepping and the flags that matter', () => {
    const processor = parseProcessor(cpuinfo);
    expect(processor).toEqual({
      family: 6,
      model: 143,
      stepping: 8,
      flags: ['avx2', 'avx512f', 'avx512_bf16', 'amx_tile', 'amx_bf16'],
    });
    expect(processor && bestClass(processor)).toBe('amx');
    expect(bestClass({ family: 26, model: 2, stepping: 1, flags: ['avx2', 'avx512f', 'avx512_bf16'] })).toBe(
      'avx512_bf16',
    );
    expect(parseProcessor('processor\t: 0\nBogoMIPS\t: 50.00\n')).toBeUndefined();
  });

  it.each([
    [{}, undefined],
    [{ ATEN_CPU_CAPABILITY: 'avx512', ONEDNN_MAX_CPU_ISA: 'ALL' }, undefined],
    [{ PETREL_ISA: 'avx512_bf16' }, 'lowered: petrel only (PETREL_ISA=avx512_bf16)'],
    [{ ONEDNN_MAX_CPU_ISA: 'AVX512_CORE_BF16' }, 'lowered: the peer only (ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16)'],
    [{ MKL_ENABLE_INSTRUCTIONS: 'AVX2' }, 'lowered: the peer only (MKL_ENABLE_INSTRUCTIONS=AVX2)'],
    [{ ATEN_CPU_CAPABILITY: 'default' }, 'lowered: the peer only (ATEN_CPU_CAPABILITY=default)'],
    [
      { PETREL_ISA: 'avx2', ATEN_CPU_CAPABILITY: 'avx2' },
      'lowered: both sides (PETREL_ISA=avx2, ATEN_CPU_CAPABILITY=avx2)',
    ],
  ])('with AMX and %j is described as %s', (env: NodeJS.ProcessEnv, text: string | undefined) => {
    expect(describeLowering(env, 'amx')).toBe(text);
  });

  it('is not lowered by a variable that names what it has', () => {
    const env: NodeJS.ProcessEnv = {};
    lowerBothSides('avx512_bf16', env);
    expect(describeLowering(env, 'avx512_bf16')).toBeUndefined();
    expect(describeLowering(env, 'amx')).toMatch(/^lowered: both sides \(PETREL_ISA=avx512_bf16, ONEDNN_MAX_CPU_ISA=/);
  });
});

describe('the bound of a row', () => {
  const row = { name: 'decode.S.b16', value: 300, unit: 'tokens/s' } as const;
  const gemm = { name: 'peak.gemm.S.b16', value: 1000, unit: 'tokens/s' } as const;
  const read = { name: 'peak.read', value: 6000, unit: 'bytes/s' } as const;
  const limits = [
    { peak: gemm.name, need: 1 },
    { peak: read.name, need: 10 },
  ];

  it('is the smallest that its limits allow, and the table says which', () => {
    const bounded = withShare(row, limits, [gemm, read]);
    expect(bounded).toEqual({ ...row, limit: 'peak.read', bound: 600, share: 0.5 });
    expect(renderTable([bounded])).toMatch(/\| 50 % of read +\|/);
  });

  it('is left out when a limit was not measured', () => {
    expect(withShare(row, limits, [gemm])).toEqual(row);
    expect(withShare(row, [], [gemm])).toEqual(row);
  });

  it('counts six operations per weight and token of a training step', () => {
    for (const name of sizeNames) {
      const size = sizeOf(name, false);
      const { tokens, products } = trainingProducts(size);
      const operations = products.reduce((sum, product) => sum + operationsOf(product), 0);
      expect(operations).toBe(6 * tokens * (weightBytes(size, 'bf16') / 2));
    }
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
