/**
 * `npm run check:nodes`: the functions of core/math have their recorded bits on each version of Node that npm has, and
 * on arm64 under qemu. What this machine cannot run is named and skipped. The exit code is 1 when a digest differs.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { petrelHome } from '../../infra/home.ts';
import { packageRoot } from '../../infra/home.ts';
import { recordedCount, recordedDigests } from './recorded.ts';

const nodes = [
  { arch: 'x64', versions: ['20.20.2', '22.23.1', '24.9.0', '26.12.1'] },
  { arch: 'arm64', versions: ['20.20.2', '26.12.0'] },
] as const;

/** The libraries of arm64 that Debian installs beside those of the machine. */
const arm64Libraries = '/usr/aarch64-linux-gnu';
const arm64Packages = 'qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross libatomic1-arm64-cross';

const program = join(packageRoot(), 'dist/tests/math/print-digests.js');
let failures = 0;
for (const { arch, versions } of nodes) {
  for (const version of versions) {
    const result = check(arch, version);
    if (result.startsWith('other')) failures += 1;
    console.log(`Node ${version} on ${arch}: ${result}`);
  }
}
process.exitCode = failures > 0 ? 1 : 0;

function check(arch: string, version: string): string {
  const runner = arch === process.arch ? [] : emulator();
  if (runner === undefined) return `skipped: apt-get install ${arm64Packages}`;
  const node = nodeOf(arch, version);
  if (node === undefined) return `skipped: npm could not fetch node-linux-${arch}@${version}`;
  const [command = node, ...args] = [...runner, node, program, String(recordedCount)];
  const found = JSON.parse(execFileSync(command, args, { encoding: 'utf8' })) as Record<string, string>;
  const others = Object.keys(recordedDigests).filter((name) => found[name] !== recordedDigests[name]);
  return others.length === 0 ? 'the recorded bits' : `other bits: ${others.join(', ')}`;
}

function emulator(): string[] | undefined {
  const qemu = ['qemu-aarch64-static', 'qemu-aarch64'].find((name) => spawnSync(name, ['--version']).status === 0);
  return qemu === undefined || !existsSync(arm64Libraries) ? undefined : [qemu, '-L', arm64Libraries];
}

/** The program of this version, fetched once into PETREL_HOME; undefined where npm does not give it. */
function nodeOf(arch: string, version: string): string | undefined {
  const name = `node-linux-${arch}`;
  const folder = join(petrelHome(), 'toolchain', 'nodes', `${arch}-${version}`);
  const path = join(folder, 'package', 'bin', 'node');
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const packed = spawnSync('npm', ['pack', '--silent', `${name}@${version}`], { cwd: folder, encoding: 'utf8' });
  if (packed.status !== 0) return undefined;
  execFileSync('tar', ['-xzf', packed.stdout.trim()], { cwd: folder });
  return path;
}
