/**
 * Brings a machine that has Node and nothing else into a pool: `petrel fleet token --program FILE` writes this program,
 * in one file, with a token in front of it. It fetches the build of the stack from the store, verifies it, and runs its
 * worker.
 */
import { parseArgs } from 'node:util';
import { joinFleet } from '../../api/fleet/join.ts';
import type { JoinOptions } from '../../api/fleet/join.ts';
import { petrelHome } from '../../api/home.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { exitCodeOf } from '../exit-codes.ts';
import { createPrinter } from '../printer/printer.ts';
import { untilToldToLeave } from './until-told-to-leave.ts';

const { stdout, stderr, env, argv, versions, platform, arch } = process;
const printer = createPrinter({ json: false, stdout, stderr, env });

try {
  checkMachine();
  const context = { home: petrelHome(env), cwd: process.cwd(), env, notice: printer.notice };
  const text = JSON.stringify((globalThis as { readonly petrelToken?: unknown }).petrelToken ?? null);
  await untilToldToLeave((signal) => joinFleet(context, { text, where: argv[1] ?? '', ...given(), signal }));
} catch (error) {
  printer.error(error);
  process.exitCode = exitCodeOf(error);
}

/** The build has native code for one kind of machine. */
function checkMachine(): void {
  const [major = 0, minor = 0] = versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19))
    throw new InvalidInputError(`expected Node 20.19 or newer, got ${versions.node}`, { hint: 'install Node 22' });
  if (platform !== 'linux' || arch !== 'x64')
    throw new InvalidInputError(`expected a machine with Linux on x64, got ${platform} on ${arch}`, {
      hint: 'run it on another machine; workers on other systems are not built',
    });
}

/** `--threads N`, default: all processors; `--grace SECONDS`. */
function given(): Pick<JoinOptions, 'threads' | 'graceSeconds'> {
  const { values } = read();
  return {
    threads: whole('--threads', values.threads, 1_024),
    graceSeconds: whole('--grace', values.grace, 86_400),
  };
}

function read() {
  try {
    return parseArgs({ args: argv.slice(2), options: { threads: { type: 'string' }, grace: { type: 'string' } } });
  } catch (cause) {
    throw new InvalidInputError(
      `expected --threads N and --grace SECONDS, or nothing, got ${argv.slice(2).join(' ')}`,
      {
        hint: `node ${argv[1]} --threads 4`,
        cause,
      },
    );
  }
}

function whole(flag: string, value: string | undefined, most: number): number | undefined {
  if (value === undefined) return undefined;
  const count = Number(value);
  if (Number.isInteger(count) && count >= 1 && count <= most) return count;
  throw new InvalidInputError(`${flag}: expected a whole number from 1 to ${most}, got ${value}`, {
    hint: `node ${argv[1]} ${flag} 4`,
  });
}
