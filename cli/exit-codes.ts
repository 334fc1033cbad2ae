/** What a command's exit code says. Scripts depend on these numbers. */
import { PetrelError } from '../core/errors.ts';

export const EXIT = {
  ok: 0,
  internal: 1,
  usage: 2,
  notFound: 3,
  credentials: 4,
  conflict: 5,
  unreachable: 6,
  noCapacity: 7,
  precheckFailed: 8,
  runFailed: 100,
  stillRunning: 101,
  runNotFound: 102,
  runCancelled: 103,
  runPaused: 104,
  interrupted: 130,
} as const;

/**
 * What each exit code says, for docs/look-up/commands.md. The codes from 100 to 104 end commands that wait for a run.
 */
export const exitDocs: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'Success.',
  internal: 'An error inside petrel.',
  usage: 'A wrong word on the command line, or an invalid recipe.',
  notFound: 'No run, schedule or file has this name.',
  credentials: 'Credentials are missing, or do not permit it.',
  conflict: 'The name is taken, the run is already active, or another stack owns it.',
  unreachable: 'A server cannot be reached; trying again may help.',
  noCapacity: 'The cloud has no machine of this kind at present.',
  precheckFailed: 'A check failed.',
  runFailed: 'With `--wait`: the run failed.',
  stillRunning: 'With `--wait`: the run goes on.',
  runNotFound: 'With `--wait`: the run is gone.',
  runCancelled: 'With `--wait`: the run was cancelled.',
  runPaused: 'With `--wait`: the run is paused.',
  interrupted: 'Ctrl-C.',
};

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const BY_CODE: Readonly<Record<string, ExitCode>> = {
  InvalidInput: EXIT.usage,
  NotFound: EXIT.notFound,
  Credentials: EXIT.credentials,
  PermissionDenied: EXIT.credentials,
  Conflict: EXIT.conflict,
  Fenced: EXIT.conflict,
  NothingToSkip: EXIT.conflict,
  NoCapacity: EXIT.noCapacity,
  PrecheckFailed: EXIT.precheckFailed,
  TooLittleMemory: EXIT.precheckFailed,
  NoSandbox: EXIT.precheckFailed,
  NoPython: EXIT.precheckFailed,
  NoScorerPackages: EXIT.precheckFailed,
};

const CONNECTION_CODES: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
]);

/** The exit code of a command that ended with this error. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof PetrelError) {
    return BY_CODE[error.code] ?? (error.kind === 'retryable' ? EXIT.unreachable : EXIT.internal);
  }
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return CONNECTION_CODES.has(code) ? EXIT.unreachable : EXIT.internal;
}

const BY_STATE: Readonly<Record<string, ExitCode>> = {
  completed: EXIT.ok,
  stopped: EXIT.ok,
  failed: EXIT.runFailed,
  cancelled: EXIT.runCancelled,
  paused: EXIT.runPaused,
};

/** The exit code of a command that waited and found the run in this state. */
export function exitCodeOfState(state: string): ExitCode {
  return BY_STATE[state] ?? EXIT.stillRunning;
}
