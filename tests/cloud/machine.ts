/**
 * A machine as processes: an empty home, a clean environment, and the real user data in bash, in a session of its own.
 * It ends as a machine does that loses its power: SIGKILL for all of its processes at once, also when the test cloud
 * itself dies.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Socket } from 'node:net';
import { reaperPath } from '../../rewards/host/reaper.ts';

export interface Machine {
  readonly pid: number;
  /** Resolves when no process is left: its script has ended, or `kill` has ended it. */
  readonly ended: Promise<void>;
  kill(): void;
}

export interface MachineSpec {
  /** The machine's disk, which goes with it; only `console.log` remains. */
  readonly folder: string;
  readonly userData: string;
  readonly env: Readonly<Record<string, string>>;
}

/** `shutdown -h now` as root: the reaper ends all of the machine's processes at SIGTERM. */
const shutdown = '#!/bin/bash\nkill -TERM "$TEST_CLOUD_MACHINE"\nexec sleep infinity\n';
const start = 'export TEST_CLOUD_MACHINE=$PPID; exec /bin/bash "$0"';

export function startMachine({ folder, userData, env }: MachineSpec): Machine {
  for (const name of ['home', 'tmp', 'bin']) mkdirSync(join(folder, name), { recursive: true });
  const script = join(folder, 'user-data.sh');
  writeFileSync(script, userData, { mode: 0o700 });
  for (const name of ['shutdown', 'poweroff']) writeFileSync(join(folder, 'bin', name), shutdown, { mode: 0o755 });
  const log = openSync(consoleOf(folder), 'a');
  const child = spawn(reaperPath(), ['/bin/bash', '-c', start, script], {
    detached: true,
    cwd: join(folder, 'home'),
    env: {
      PATH: [join(folder, 'bin'), dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(':'),
      HOME: join(folder, 'home'),
      TMPDIR: join(folder, 'tmp'),
      LANG: 'C.UTF-8',
      ...env,
    },
    // The reaper ends everything when the other end of descriptor 3 closes.
    stdio: ['ignore', log, log, 'pipe'],
  });
  closeSync(log);
  return { pid: child.pid ?? 0, ended: whenEnded(child, folder), kill: () => (child.stdio[3] as Socket).destroy() };
}

/** What the machine has printed; it remains readable. */
export const consoleOf = (folder: string): string => join(folder, 'console.log');

async function whenEnded(child: ChildProcess, folder: string): Promise<void> {
  await once(child, 'exit');
  (child.stdio[3] as Socket).destroy();
  for (const name of ['home', 'tmp', 'bin', 'user-data.sh'])
    rmSync(join(folder, name), { recursive: true, force: true });
}
