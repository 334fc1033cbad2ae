// @module-tag engines
/** `npm run gpu:check` on a processor, with small models: that the program itself is right where there is no GPU. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { packageRoot, petrelHome } from '../../infra/home.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';

it('passes each line of its table', async () => {
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const program = join(packageRoot(), 'engines/torch/gpu_check.py');
  const { stdout } = await promisify(execFile)(python, ['-I', '-B', program, '--device', 'cpu', '--small']);
  const rows = stdout.split('\n').filter((line) => line.startsWith('| '));
  expect(rows.filter((row) => row.includes('FAIL'))).toEqual([]);
  for (const what of ['bits of 5 steps', 'a save and a load', 'deepseek_v3: log-probs in bf16', 'the sampler hf'])
    expect(rows.filter((row) => row.includes(what) && row.endsWith('| PASS |'))).toHaveLength(1);
});
