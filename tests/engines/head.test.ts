// @module-tag engines
/** The head in chunks: how many rows by vocabulary, and gradients that do not depend on the number of chunks. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { packageRoot, petrelHome } from '../../infra/home.ts';

interface Found {
  /** Rows of a chunk by device and words. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Relative errors of the weight's gradient in one chunk, in two, and in one for each row. */
  readonly errors: Readonly<Record<'float32' | 'bfloat16', readonly number[]>>;
}

it('a chunk of the head keeps within its bound, and many of them sum gradients as well as one', async () => {
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const script = join(packageRoot(), 'tests/engines/head.py');
  const { stdout } = await promisify(execFile)(python, ['-I', '-B', script, join(packageRoot(), 'engines/torch')]);
  const { sizes, errors } = JSON.parse(stdout) as Found;
  expect(sizes).toEqual({ 'cpu 8192': 4096, 'cpu 151936': 252, 'cuda 8192': 4096, 'cuda 151936': 1009 });
  for (const error of errors.float32) expect(error).toBeLessThan(1e-5);
  for (const error of errors.bfloat16) expect(error).toBeLessThan(0.005);
});
