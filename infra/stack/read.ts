/** Reads the state that the supervisor publishes. */
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import { stackVariable } from './child-spec.ts';
import { isAlive } from './process.ts';
import { readStackFile, stackFile } from './state.ts';
import type { StackInfo } from './state.ts';

/**
 * The running stack of this home; undefined when it or its supervisor is down (`ensureStack` restarts the supervisor).
 */
export function readStack(home: string): StackInfo | undefined {
  const info = readStackFile(stackFile(home));
  return info && info.phase === 'running' && isAlive(info) ? info : undefined;
}

/** The addresses of the servers, for processes of the stack. Works also while the supervisor is being replaced. */
export function stackFromEnv(env: NodeJS.ProcessEnv = process.env): StackInfo {
  const path = env[stackVariable];
  if (!path) {
    throw new InvalidInputError(`${stackVariable} is not set: this process is started by the stack's supervisor`, {
      hint: 'petrel up',
    });
  }
  const info = readStackFile(path);
  if (!info) throw new RetryableError('StackDown', 'there is no running stack', { where: path, hint: 'petrel up' });
  return info;
}

/** True when every wanted process runs and is ready. */
export function isStackReady({ phase, children }: StackInfo): boolean {
  return phase === 'running' && children.every(({ state }) => state === 'ready');
}
