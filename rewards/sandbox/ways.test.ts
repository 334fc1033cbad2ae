/**
 * Root of a container often lacks capabilities. A sandbox is then built in another way, and its program has no more
 * rights.
 */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { workingWay } from './open-walls.ts';
import { testPlaces } from './places.test-support.ts';
import { runInSandbox } from './run.ts';
import { packageFile } from '../package-file.ts';

const place = testPlaces().find(({ name }) => name === 'root')?.place;
const without = (...capabilities: string[]) => {
  const list = capabilities.map((name) => `-${name}`).join(',');
  return ['setpriv', `--bounding-set=${list}`, `--inh-caps=${list}`, '--'];
};

/** What a program sees of its user, and what it can do with files of root. */
const code = `
import json, os
def tried(work):
    try: return work()
    except OSError as error: return type(error).__name__
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({
  "id": os.getuid(), "effective": status["CapEff"].strip("0"), "outside": open("/proc/self/uid_map").read().split(),
  "setting": tried(lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
  "library": tried(lambda: open("/petrel/guard", "ab")), "guard": tried(lambda: open("/proc/1/environ").read()),
}))`;

describe.skipIf(place === undefined)('as root (skipped where no sandbox works)', () => {
  // The body runs also where its tests are skipped.
  const { walls, python } = place ?? ({} as NonNullable<typeof place>);

  async function seen(prefix: readonly string[]): Promise<unknown> {
    const way = workingWay({ ...walls, prefix });
    const { end, stdout, stderr } = await runInSandbox(way, {
      command: [python.program, '-s', '-B', '-c', code],
      stdin: '',
      env: { HOME: '/tmp' },
      binds: python.binds,
      limits: { wallMs: 60_000, cpuMs: 60_000, memoryMb: 128, tasks: 8, outputBytes: 10_000, diskMb: 4, openFiles: 64 },
    });
    expect({ end, stderr }).toEqual({ end: { type: 'exit', code: 0 }, stderr: '' });
    return { ...(JSON.parse(stdout) as object), root: way.root, namespace: way.namespace };
  }

  const powerless = {
    id: 1000,
    effective: '',
    setting: expect.stringMatching(/Error$/),
    library: expect.stringMatching(/Error$/),
    guard: 'PermissionError',
  };

  it('with all capabilities, the sandbox is built without a user namespace around it', async () => {
    expect(await seen([])).toMatchObject({ ...powerless, root: true, namespace: false });
  });

  it('without CAP_SYS_ADMIN, a program has a user of its own in a user namespace', async () => {
    const found = await seen(without('sys_admin'));
    expect(found).toMatchObject({ ...powerless, root: true, namespace: true });
    expect(found).not.toMatchObject({ outside: ['1000', '0', '1'] });
  });

  it('without the right to give a program another user, no sandbox is built', () => {
    const prefix = without('sys_admin', 'setuid', 'setgid');
    expect(() => workingWay({ ...walls, prefix })).toThrow(
      expect.objectContaining({ code: 'NoSandbox', hint: expect.stringContaining('CAP_SETUID, CAP_SETGID') }),
    );
  });

  it('petrel doctor says which way it takes', () => {
    const [command = '', ...args] = [
      ...without('sys_admin'),
      process.execPath,
      packageFile('cli', 'bin.mjs'),
      'doctor',
    ];
    const { stdout } = spawnSync(command, args, { encoding: 'utf8' });
    expect(stdout).toMatch(/sandbox.* as root of a user namespace \(without CAP_SYS_ADMIN\)/);
  });
});
