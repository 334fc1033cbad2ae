/** What the addon reports about itself and this machine. */
import { native } from './binding.ts';

/** Properties of this build and of this machine. */
export interface EngineInfo {
  /** Instruction-set path in use. */
  readonly isa: 'avx2' | 'avx512' | 'avx512_bf16' | 'amx';
  /** Whether compute bf16 is possible. */
  readonly bf16: boolean;
  /** Hash over the native sources and the compiler's version: shows which build this is. No profile depends on it. */
  readonly build: string;
  /** Names the flags that a person added to those of the build (PETREL_CXX_FLAGS); empty without any. */
  readonly addedFlags: string;
  /** Processors that this process may use. */
  readonly threads: number;
}

/** Throws EngineMissing or EngineUnusable (TerminalError) when the addon cannot be loaded. */
export function engineInfo(): EngineInfo {
  return native().engineInfo() as EngineInfo;
}
