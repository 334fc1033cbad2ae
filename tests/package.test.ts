/**
 * The package as npm installs it: without sources, with every dependency inside, and nothing is written outside
 * PETREL_HOME.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';

const isRoot = process.getuid?.() === 0;
const nobody = 65534;
const place = mkdtempSync(join(tmpdir(), 'petrel-package-'));
const [installed, home] = [join(place, 'petrel'), join(place, 'home')];

/** Runs petrel as another user than the one who installed it, if this test may change users. */
function petrel(...words: string[]) {
  return spawnSync(process.execPath, [join(installed, 'cli/bin.mjs'), ...words], {
    cwd: home,
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', HOME: home, PETREL_HOME: home, NO_COLOR: '1' },
    ...(isRoot ? { uid: nobody, gid: nobody } : {}),
  });
}

describe('an installed package', () => {
  beforeAll(() => {
    execFileSync(process.execPath, [join(packageRoot(), 'setup/pack.mjs'), '--stage', installed]);
    mkdirSync(home);
    const machineHome = process.env['PETREL_HOME'] || join(homedir(), '.petrel');
    // The toolchain is copied, because another user may not be able to read the machine's own home.
    if (isRoot) execFileSync('cp', ['-r', join(machineHome, 'toolchain'), join(home, 'toolchain')]);
    else symlinkSync(join(machineHome, 'toolchain'), join(home, 'toolchain'));
    if (!isRoot) return;
    chmodSync(place, 0o755);
    execFileSync('chown', ['-R', String(nobody), home]);
    chownSync(home, nobody, nobody);
  });
  afterAll(() => {
    petrel('down');
    rmSync(place, { recursive: true, force: true });
  });

  it('holds no sources and no development packages, and every dependency at its pinned version', () => {
    const top = readdirSync(installed);
    expect(top).toEqual(expect.arrayContaining(['dist', 'cli', 'examples', 'node_modules', 'LICENSE']));
    expect(top).not.toEqual(expect.arrayContaining(['tsconfig.json']));
    expect(readdirSync(join(installed, 'cli'))).toEqual(['bin.mjs']);
    const packages = readdirSync(join(installed, 'node_modules'));
    expect(packages).toContain('zod');
    expect(packages).not.toContain('vitest');
  });

  it('holds ONNX Runtime for this platform only, which works, and no install script at all', () => {
    const modules = join(installed, 'node_modules');
    const binaries = join(modules, 'onnxruntime-node/bin/napi-v6');
    expect([readdirSync(binaries), readdirSync(join(binaries, 'linux'))]).toEqual([['linux'], ['x64']]);
    const names = readdirSync(modules).flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(modules, name)).map((own) => `${name}/${own}`) : name,
    );
    const withScripts = names.filter((name) => {
      const file = join(modules, name, 'package.json');
      const { scripts = {} } = JSON.parse(readFileSync(file, 'utf8')) as { readonly scripts?: object };
      return ['preinstall', 'install', 'postinstall'].some((script) => Object.hasOwn(scripts, script));
    });
    expect(withScripts).toEqual([]);
    const load =
      'import("onnxruntime-node").then(({ listSupportedBackends }) => console.log(listSupportedBackends()[0].name))';
    const output = execFileSync(process.execPath, ['-e', load], { cwd: installed, encoding: 'utf8' });
    expect(output.trim()).toBe('cpu');
  });

  it('sets itself up in PETREL_HOME with the prebuilt engine, and runs an example by its name', () => {
    const run = petrel('run', '01-arithmetic-grpo', 'trainer.total_training_steps=1', 'data.val_files=null', '--wait');
    expect(run.stderr).toContain('prebuilt');
    expect(run.status, run.stderr).toBe(0);
    expect(readdirSync(home)).toEqual(expect.arrayContaining(['engine', 'store']));
  });

  it('reports by doctor that nothing is wrong', () => {
    const doctor = petrel('doctor', '--json');
    expect(doctor.status, doctor.stdout + doctor.stderr).toBe(0);
  });
});
