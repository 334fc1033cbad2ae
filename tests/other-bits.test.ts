/**
 * An engine that was built with -ffast-math is caught: by itself, `doctor`, `plan`, `run` and the worker that has it.
 *
 * @module-tag long
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { engineProof } from '../core/wire/engine-proof.ts';
import { packageRoot } from '../infra/home.ts';
import type { PlanCheck } from '../api/checks/checks.ts';
import type { DoctorLine } from '../api/doctor/checks.ts';
import { runWords } from './cli.ts';
import { temporaryHome } from './servers.ts';
import type { TemporaryHome } from './servers.ts';

const root = packageRoot();
const folder = mkdtempSync(join(tmpdir(), 'petrel-other-bits-'));
const addon = join(folder, 'petrel.node');
const hasTools = spawnSync('cmake', ['--version']).status === 0 && spawnSync('c++', ['--version']).status === 0;

let home: TemporaryHome;
beforeEach(() => (home = temporaryHome()));
afterEach(() => home.remove());
const petrel = (...words: string[]) => runWords(home.home, words);
afterAll(() => rmSync(folder, { recursive: true }));

/** Minutes on a busy machine: every file is compiled. */
const compiling = 1_800_000;

describe.skipIf(!hasTools)('an engine built with -ffast-math (skipped: needs cmake and a compiler)', () => {
  beforeAll(() => {
    const build = join(folder, 'build');
    const settings = [`-DOUTPUT_DIR=${folder}`, '-DPETREL_CXX_FLAGS=-ffast-math'];
    execFileSync('cmake', ['-S', join(root, 'native'), '-B', build, ...settings], { stdio: 'pipe' });
    execFileSync('cmake', ['--build', build, '--parallel', '2'], { stdio: 'pipe' });
    process.env['PETREL_NATIVE'] = addon;
  }, compiling);
  afterAll(() => delete process.env['PETREL_NATIVE']);

  it('has other bits, and another name', () => {
    const program = join(root, 'dist/native/print-proof.js');
    const printed = JSON.parse(execFileSync(process.execPath, [program], { encoding: 'utf8' }));
    expect(printed.addedFlags).toMatch(/^[0-9a-f]{8}$/);
    for (const proof of engineProof.array().parse(printed.proofs)) expect(proof.state, proof.profile).toBe('refused');
  });

  it('is red for doctor', async () => {
    const lines = (await petrel('doctor', '--json')).json<DoctorLine[]>();
    expect(lines.find(({ name }) => name === 'engine')).toMatchObject({
      status: 'red',
      detail: expect.stringContaining('other bits in fp32 than det-1 names'),
    });
  });

  it('is refused by plan and run where the run promises its bits, and only there', async () => {
    const example = join(root, 'examples/01-arithmetic-grpo');
    const checks = async (deterministic: string) =>
      (await petrel('plan', example, deterministic, '--json')).json<{ checks: PlanCheck[] }>().checks;
    const engine = (found: readonly PlanCheck[]) => found.find(({ name }) => name === 'engine');
    expect(engine(await checks('deterministic=true'))).toMatchObject({ status: 'failed' });
    expect(engine(await checks('deterministic=false'))).toBeUndefined();
    await expect(petrel('run', example, 'deterministic=true', '--name', 'fast')).rejects.toThrow(
      'other bits in fp32 than det-1 names',
    );
  });
});
