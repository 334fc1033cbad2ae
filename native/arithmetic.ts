/** The name of the engine's arithmetic: two builds with the same name give the same bits for the same inputs. */
import type { EngineOptions } from '../core/ports/policy.ts';
import type { ComputeType } from '../core/parameters.ts';
import type { EngineInfo } from './engine-info.ts';

/**
 * Versions by compute type. Raise one by hand, with every change of native/ that changes a bit of its results, and
 * record the bits again with `npm run record:arithmetic`. arithmetic.test.ts fails when the bits changed and the
 * version did not. A change of layout, threads or names that keeps the bits keeps the version, so that deterministic
 * runs continue with the new build.
 */
export const arithmeticVersions: Readonly<Record<ComputeType, number>> = { fp32: 1, bf16: 3 };

/**
 * Everything that decides the bits of a result, apart from its inputs. Deterministic results do not depend on the
 * threads, and in fp32 not on the instruction set either; the instructions of bf16 round as their processors do.
 */
export function arithmeticOf(
  options: Pick<EngineOptions, 'compute' | 'deterministic'>,
  info: Pick<EngineInfo, 'isa'> & Partial<Pick<EngineInfo, 'addedFlags'>>,
): string {
  const { compute, deterministic } = options;
  const version = `${arithmeticVersions[compute]}${info.addedFlags ? ` flags ${info.addedFlags}` : ''}`;
  if (deterministic)
    return compute === 'fp32' ? `${version} deterministic` : `${version} bf16 deterministic ${info.isa}`;
  return `${version} ${compute} ${info.isa}`;
}
