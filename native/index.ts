import type { EngineOptions } from '../core/ports.ts';
import { native } from './binding.ts';

export { adamw, clipGradients, convertBf16, convertFp16, mapFile, roundBf16, roundFp16 } from './arrays.ts';
export { createGenerator, type GeneratorOptions } from './generate.ts';
export { engineTicks } from './ticks.ts';
export { createTrainer, NativeTrainer, type TrainerOptions } from './trainer.ts';

/** What this build is and what this machine gives it. */
export interface EngineInfo {
  /** Instruction-set path in use. */
  readonly isa: 'avx2' | 'avx512' | 'avx512_bf16';
  /** Whether compute bf16 is possible. */
  readonly bf16: boolean;
  /** oneDNN's version. */
  readonly onednn: string;
  /** Hash over the native sources. */
  readonly build: string;
  /** Processors that this process may use. */
  readonly threads: number;
}

/** Throws EngineMissing or EngineUnusable (TerminalError) when the addon cannot be loaded. */
export function engineInfo(): EngineInfo {
  return native().engineInfo() as EngineInfo;
}

/**
 * Everything that decides the bits of a result besides its inputs. Deterministic results do not depend on instruction set or
 * threads, so these are left out there.
 */
export function numericProfile(options: EngineOptions): string {
  const { isa, build, onednn } = engineInfo();
  if (options.deterministic) return `native/${build} fp32 fixed`;
  return `native/${build} ${options.compute} ${isa} onednn-${onednn} threads-${options.threads}`;
}
