/** Memory that a rank of an engine may still take (petrel_torch/memory.py), by the files of made-up machines. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-free-memory-'));
afterAll(() => rmSync(folder, { recursive: true }));
const program =
  'import sys; sys.path.insert(0, sys.argv[1]); import memory; print(memory.available_bytes(sys.argv[2]))';

/** What memory.py says on a machine with these files and 8 MiB available. */
function available(files: Readonly<Record<string, string>>): number {
  const root = mkdtempSync(join(folder, 'root-'));
  for (const [name, text] of Object.entries({ 'proc/meminfo': 'MemAvailable:  8192 kB\n', ...files })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const modules = join(packageRoot(), 'engines/torch/petrel_torch');
  return Number(execFileSync('python3', ['-I', '-B', '-c', program, modules, root], { encoding: 'utf8' }));
}

const groups = 'sys/fs/cgroup';
const unlimited = '9223372036854771712';

it.each<readonly [string, Record<string, string>, number]>([
  ['without control groups', {}, 2 ** 23],
  [
    'without limits',
    { 'proc/self/cgroup': '0::/a\n', [`${groups}/a/memory.max`]: 'max\n', [`${groups}/a/memory.current`]: '9000000\n' },
    2 ** 23,
  ],
  [
    'in a group with a limit, whose cached files count as free',
    {
      'proc/self/cgroup': '0::/a/b\n',
      [`${groups}/a/b/memory.max`]: '5000000\n',
      [`${groups}/a/b/memory.current`]: '4000000\n',
      [`${groups}/a/b/memory.stat`]: 'anon 3500000\ninactive_file 500000\n',
    },
    1_500_000,
  ],
  [
    'in a group below one with a limit',
    {
      'proc/self/cgroup': '0::/a/b\n',
      [`${groups}/a/memory.max`]: '5000000\n',
      [`${groups}/a/memory.current`]: '4000000\n',
      [`${groups}/a/b/memory.max`]: 'max\n',
      [`${groups}/a/b/memory.current`]: '100\n',
    },
    1_000_000,
  ],
  [
    'in a group that is over its limit',
    {
      'proc/self/cgroup': '0::/\n',
      [`${groups}/memory.max`]: '4000000\n',
      [`${groups}/memory.current`]: '4000001\n',
    },
    0,
  ],
  [
    'in a container of version 1, which sees the path of its host',
    {
      'proc/self/cgroup': `5:cpu,cpuacct:/docker/7\n4:memory:/docker/7\n0::/system\n`,
      [`${groups}/memory/memory.limit_in_bytes`]: '5000000\n',
      [`${groups}/memory/memory.usage_in_bytes`]: '4000000\n',
      [`${groups}/memory/memory.stat`]: 'inactive_file 1\ntotal_inactive_file 250000\n',
    },
    1_250_000,
  ],
  [
    'in a group of version 1 without a limit',
    {
      'proc/self/cgroup': '4:memory:/a\n',
      [`${groups}/memory/a/memory.limit_in_bytes`]: `${unlimited}\n`,
      [`${groups}/memory/a/memory.usage_in_bytes`]: '4000000\n',
    },
    2 ** 23,
  ],
])('%s', (_, files, bytes) => expect(available(files)).toBe(bytes));
