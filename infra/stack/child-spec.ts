/** What the supervisor needs to know to start, find again and stop one process. */
import { createHash } from 'node:crypto';
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
  /** Done just before each start: configuration files, traces of the predecessor. */
  prepare?(): void;
  /** Asked again and again after the start until it says true. */
  isReady(process: ProcessIdentity): boolean | Promise<boolean>;
  /** Asked now and then while it is ready: why it must be started again although it runs. */
  isStuck?(): Promise<string | undefined>;
  /** Done before a process that was stuck is started again. */
  repair?(): void;
  /** A process that is not ready by then is killed and started again. */
  readonly readyTimeoutMs: number;
  /** How long it may take after SIGTERM. */
  readonly stopGraceMs: number;
}

/** Environment that marks every process of a stack, and by inheritance what those start. */
export const stackVariable = 'PETREL_STACK';
export const childVariable = 'PETREL_CHILD';
export const kindVariable = 'PETREL_CHILD_KIND';
/** How the process before it ended; absent for the first one. */
export const predecessorVariable = 'PETREL_PREDECESSOR_ENDED';

/** The environment of a child: petrel's own variables on top of the supervisor's. */
export function childEnv(home: string, { name, kind, env }: ChildSpec): NodeJS.ProcessEnv {
  return {
    ...process.env,
    PETREL_HOME: home,
    [stackVariable]: stackFile(home),
    [childVariable]: name,
    [kindVariable]: kind,
    ...env,
  };
}

/** Equal for two starts of the same program: same command and, for petrel's own programs, the same built code. */
export function fingerprint({ kind, command, args }: ChildSpec): string {
  const code = kind === 'control' || kind === 'worker' ? buildId() : '';
  return createHash('sha256')
    .update(JSON.stringify([command, args, code]))
    .digest('hex')
    .slice(0, 16);
}
