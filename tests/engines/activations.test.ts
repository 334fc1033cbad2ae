// @module-tag engines
/** Layers whose activations do not fit into memory are computed again: how many, and to which bits. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { packageRoot, petrelHome } from '../../infra/home.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-activations-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Line {
  readonly model: string;
  readonly compute: string;
  /** Layers that were computed again, with plenty of memory, with some and with none. */
  readonly again: readonly [number, number, number];
  readonly equal: boolean;
  readonly moved: boolean;
}

it('a layer whose activations do not fit is computed again, and every gradient has the same bits', async () => {
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const script = join(packageRoot(), 'tests/engines/activations.py');
  const { stdout } = await promisify(execFile)(python, [
    '-I',
    '-B',
    script,
    join(packageRoot(), 'engines/torch'),
    folder,
  ]);
  const lines = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);
  expect(lines.map(({ model, compute }) => `${model} ${compute}`)).toEqual([
    'llama fp32',
    'llama bf16',
    'qwen3_moe fp32',
    'qwen3_moe bf16',
  ]);
  for (const { again, equal, moved } of lines) {
    expect({ equal, moved }).toEqual({ equal: true, moved: true });
    // Four layers, of which the first is always kept.
    expect(again[0]).toBe(0);
    expect(again[1]).toBeGreaterThan(0);
    expect(again[1]).toBeLessThan(3);
    expect(again[2]).toBe(3);
  }
});
