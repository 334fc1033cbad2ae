/** What the addon says about itself and this machine. */
import { native } from './binding.ts';

/** What this build is and what this machine gives it. */
export interface EngineInfo {
  /** Instruction-set path in use. */
  readonly isa: 'avx2' | 'avx512' | 'avx512_bf16';
  /** Whether compute bf16 is possible. */
  readonly bf16: boolean;
  /** oneDNN's version. */
  readonly onednn: string;
  /** Which library computes large bf16 products: oneDNN where the processor has AMX, else the engine's own kernels. */
  readonly matmul: 'onednn' | 'own';
  /** Hash over the native sources and the compiler's version: tells people which build it is. No profile depends on it. */
  readonly build: string;
  /** Processors that this process may use. */
  readonly threads: number;
}

/** Throws EngineMissing or EngineUnusable (TerminalError) when the addon cannot be loaded. */
export function engineInfo(): EngineInfo {
  return native().engineInfo() as EngineInfo;
}
