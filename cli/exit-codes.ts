/** What a command's exit code says. Scripts depend on these numbers. */
import { PetrelError } from '../core/errors.ts';

export const EXIT = {
  ok: 0,
  internal: 1,
  /** A wrong word on the command line, or an invalid recipe. */
  usage: 2,
  notFound: 3,
  credentials: 4,
  /** The name is taken, the run is already active, another stack owns it. */
  conflict: 5,
  /** A server cannot be reached; trying again may help. */
  unreachable: 6,
  noCapacity: 7,
  precheckFailed: 8,
  /** This code and the ones below belong to commands that wait for a run. */
  runFailed: 100,
  stillRunning: 101,
  runNotFound: 102,
  runCancelled: 103,
  runPaused: 104,
  interrupted: 130,
} as const;

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
