/** The command line that runs a program in a sandbox: bubblewrap, the guard, the program. */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mountArguments, type Bind } from './mounts.ts';
import type { Walls } from './walls.ts';

/** Path of the guard in a sandbox. */
export const guardInside = '/petrel/guard';

/** Orders to the guard: the head of native/guard/guard.c. */
export interface GuardOrders {
  readonly report?: number;
  readonly wall_ms?: number;
  readonly cpu_ms?: number;
  readonly memory_kib?: number;
  readonly tasks?: number;
  readonly file_kib?: number;
  readonly files?: number;
}

export interface SandboxedProgram {
  /** The command, with paths as seen in the sandbox. */
  readonly command: readonly string[];
  readonly binds: readonly Bind[];
  readonly diskMb: number;
  readonly orders: GuardOrders;
}

/**
 * The environment is the caller's matter: bubblewrap passes on what it gets. `prefix`: a command that becomes the
 * command after it.
 */
export function sandboxCommand(
  walls: Walls,
  { command, binds, diskMb, orders }: SandboxedProgram,
  prefix: readonly string[] = [],
): { readonly command: string; readonly args: string[] } {
  const uid = freeUser();
  const user = walls.root ? { uid } : {};
  const namespace = walls.namespace ? [walls.guard, 'namespace', String(uid)] : [];
  const words = Object.entries({ ...user, ...orders }).map(([name, value]) => `${name}=${Math.ceil(value)}`);
  const [program = walls.bwrap, ...args] = [
    ...prefix,
    ...walls.prefix,
    ...namespace,
    walls.bwrap,
    ...(walls.root ? asRoot : asUser),
    ...everywhere,
    ...mountArguments([...binds, { path: walls.guard, at: guardInside }], walls.sizes ? diskMb : undefined),
    ...['--chdir', '/tmp', guardInside, ...words, '--', ...command],
  ];
  return { command: program, args };
}

const everywhere = [
  ...['--unshare-pid', '--unshare-net', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
  ...['--hostname', 'sandbox', '--new-session', '--die-with-parent', '--as-pid-1'],
];
const asUser = ['--unshare-user', '--uid', '1000', '--gid', '1000'];
/**
 * What the guard needs to give the program another user, to see how much memory its processes share, and to stop them.
 */
const asRoot = [
  '--cap-drop',
  'ALL',
  '--cap-add',
  'CAP_SETUID',
  '--cap-add',
  'CAP_SETGID',
  '--cap-add',
  'CAP_SYS_PTRACE',
  '--cap-add',
  'CAP_KILL',
];

/**
 * A user number that probably nobody has, another one for each sandbox: the last ones of those that this user namespace
 * maps, at most 2,000,000,000 to 2,016,777,215.
 */
function freeUser(): number {
  const map = readFileSync('/proc/self/uid_map', 'utf8');
  const ends = map.split('\n').map((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
    return first + count;
  });
  const end = Math.min(Math.max(...ends), 2_016_777_216);
  const room = Math.min(2 ** 24, Math.floor(end / 4));
  return end - randomInt(1, Math.max(2, room));
}
