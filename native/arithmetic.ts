/** The name of the engine's arithmetic: two builds with the same name give the same bits for the same inputs. */
import type { EngineOptions } from '../core/ports/policy.ts';
import type { EngineInfo } from './engine-info.ts';

/**
 * Raise it by one, by hand, with every change of native/ that changes a bit of any result, and record the bits again
 * with `npm run record:arithmetic`. arithmetic.test.ts fails when the bits changed and the version did not. A change of
 * layout, threads or names that keeps the bits keeps the version, so that deterministic runs continue with the new
 * build.
 */
export const arithmeticVersion = 1;

/**
 * Everything that decides the bits of a result, apart from its inputs. Deterministic results depend neither on the
 * instruction set nor on the threads. oneDNN is part of the name only where it computes.
 */
export function arithmeticOf(
  options: Pick<EngineOptions, 'compute' | 'deterministic'>,
  info: Pick<EngineInfo, 'isa' | 'matmul' | 'onednn'>,
): string {
  if (options.deterministic) return `${arithmeticVersion} deterministic`;
  const products = options.compute === 'bf16' && info.matmul === 'onednn' ? ` onednn-${info.onednn}` : '';
  return `${arithmeticVersion} ${options.compute} ${info.isa}${products}`;
}
