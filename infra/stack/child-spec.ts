/** What the supervisor needs to know to start, recognise and stop one process. */
import { createHash } from 'node:crypto';
import { processEnvironment } from '../environment.ts';
import { buildId } from '../home.ts';
import { stackFile } from './state.ts';
import type { ChildKind } from './state.ts';
import type { ProcessIdentity } from './process.ts';

export interface ChildSpec {
  readonly name: string;
  readonly kind: ChildKind;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /**
   * `env` is all that the process gets, beside the marks of the stack. Others get the environment of petrel's
   * processes.
   */
  readonly isolated?: boolean;
  /** Runs before each start: writes configuration files, removes files of the previous process. */
  prepare?(): void;
  /** Polled after the start until it returns true. A text says why not. */
  isReady(process: ProcessIdentity): boolean | string | Promise<boolean | string>;
  /** Polled while the process is ready: a reason to restart it although it runs. */
  isStuck?(): Promise<string | undefined>;
  /** Runs before a stuck process is restarted. */
  repair?(): void;
  /** A process that is not ready after this time is killed and restarted. */
  readonly readyTimeoutMs: number;
  /** How long the process may take after SIGTERM. */
  readonly stopGraceMs: number;
}

/** Environment variable that marks every process of a stack and, by inheritance, their children. */
export const stackVariable = 'PETREL_STACK';
export const childVariable = 'PETREL_CHILD';
export const kindVariable = 'PETREL_CHILD_KIND';
/** How the previous process of this name ended; absent for the first one. */
export const predecessorVariable = 'PETREL_PREDECESSOR_ENDED';

/** The environment of a child, with the marks of the stack. */
export function childEnv(home: string, { name, kind, env, isolated }: ChildSpec): NodeJS.ProcessEnv {
  return {
    ...(isolated !== true && processEnvironment()),
    PETREL_HOME: home,
    [stackVariable]: stackFile(home),
    [childVariable]: name,
    [kindVariable]: kind,
    ...env,
  };
}

/** Equal for two starts of the same program: the same command and, for petrel's own programs, the same build. */
export function fingerprint({ kind, command, args }: ChildSpec): string {
  const code = kind === 'control' || kind === 'worker' ? buildId() : '';
  return createHash('sha256')
    .update(JSON.stringify([command, args, code]))
    .digest('hex')
    .slice(0, 16);
}
