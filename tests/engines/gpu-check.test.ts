// @module-tag engines
/** `npm run gpu:check` on a processor, with small models: that the program itself is right where there is no GPU. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { packageRoot, petrelHome } from '../../infra/home.ts';

function check(home: string, ...words: string[]): Promise<{ readonly stdout: string }> {
  const program = join(packageRoot(), 'setup/gpu-check.mjs');
  return promisify(execFile)(process.execPath, [program, ...words], { env: { ...process.env, PETREL_HOME: home } });
}

it('passes each line of its table', async () => {
  const { stdout } = await check(petrelHome(), '--device', 'cpu', '--small');
  const rows = stdout.split('\n').filter((line) => line.startsWith('| '));
  expect(rows.filter((row) => row.includes('FAIL'))).toEqual([]);
  for (const what of ['bits of 5 steps', 'a save and a load', 'deepseek_v3: log-probs in bf16', 'the sampler hf'])
    expect(rows.filter((row) => row.includes(what) && row.endsWith('| PASS |'))).toHaveLength(1);
});

it('says what to type where no engine is installed', async () => {
  const home = mkdtempSync(join(tmpdir(), 'petrel-no-engine-'));
  try {
    await expect(check(home)).rejects.toMatchObject({
      code: 8,
      stderr: expect.stringMatching(/petrel engine install torch --device cuda\n$/),
    });
    await expect(check(home, '--device', 'cpu')).rejects.toMatchObject({
      stderr: expect.stringMatching(/petrel engine install torch\n$/),
    });
  } finally {
    rmSync(home, { recursive: true });
  }
});

it('shows what a further process wrote before it failed, and goes on', async () => {
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const script = [
    'import sys',
    'sys.path.insert(0, sys.argv[1])',
    'import gpu_check',
    'table = gpu_check.Table()',
    'with table.line("a step"): gpu_check.child("cpu", "--time-exact", "no such model", 1)',
    'print(table.failed)',
  ].join('\n');
  const words = ['-I', '-B', '-c', script, join(packageRoot(), 'engines/torch')];
  const { stdout, stderr } = await promisify(execFile)(python, words);
  const [row, failed] = stdout.trim().split('\n');
  // torch puts the rank before what it has not caught.
  expect(row).toMatch(/^\| a step \| --time-exact ended with exit code 1: .*KeyError: 'no such model' \| FAIL \|$/);
  expect(failed).toBe('1');
  expect(stderr).toContain('Traceback');
});
