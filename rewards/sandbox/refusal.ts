/** Why no sandbox can be built here, and what to type. */
import { readFileSync } from 'node:fs';
import { UnfitError } from '../../core/errors.ts';

const install =
  'apt-get install bubblewrap (Debian, Ubuntu) or dnf install bubblewrap (Fedora); docs/do/untrusted-code.md';

const inContainer =
  'in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined';

export function noBubblewrap(): UnfitError {
  return new UnfitError('NoSandbox', 'the program bwrap, which keeps untrusted code in a sandbox, is not installed', {
    hint: install,
  });
}

const ofRoot =
  'root needs CAP_SETUID, CAP_SETGID and CAP_SETFCAP, which docker run gives it, or CAP_SYS_ADMIN (--cap-add SYS_ADMIN)';

/** `said`: what bubblewrap printed. */
export function whyRefused(root: boolean, said: string): UnfitError {
  const last = said.split('\n').at(-1) ?? said;
  return new UnfitError('NoSandbox', `bubblewrap cannot build a sandbox here: ${last}`, { hint: remedy(root, said) });
}

function remedy(root: boolean, said: string): string {
  if (/unknown option/i.test(said)) return 'bubblewrap 0.5 or newer is needed: bwrap --version';
  const setting = settings.find(({ path, forbids }) => readNumber(path) === forbids);
  if (setting !== undefined) return `as root: ${setting.remedy}`;
  return root ? `${inContainer}; ${ofRoot}, or run petrel as an ordinary user` : inContainer;
}

/** Settings of the kernel that forbid user namespaces. */
const settings = [
  {
    path: '/proc/sys/kernel/unprivileged_userns_clone',
    forbids: 0,
    remedy: 'sysctl -w kernel.unprivileged_userns_clone=1',
  },
  { path: '/proc/sys/user/max_user_namespaces', forbids: 0, remedy: 'sysctl -w user.max_user_namespaces=15000' },
  {
    path: '/proc/sys/kernel/apparmor_restrict_unprivileged_userns',
    forbids: 1,
    remedy:
      'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give bwrap an AppArmor profile (docs/do/untrusted-code.md)',
  },
];

function readNumber(path: string): number | undefined {
  try {
    return Number(readFileSync(path, 'utf8'));
  } catch {
    return undefined; // this kernel has no such setting
  }
}
