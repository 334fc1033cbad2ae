/** What Linux says about the processor: figures are comparable only between machines of one family and model. */
import { readFileSync } from 'node:fs';
import type { InstructionClass } from '../native/index.ts';

export interface Processor {
  readonly family: number;
  readonly model: number;
  readonly stepping: number;
  /** The flags that decide how fast products are. */
  readonly flags: readonly string[];
}

const importantFlags = ['avx2', 'avx512f', 'avx512_bf16', 'amx_tile', 'amx_bf16'] as const;

/** Reads /proc/cpuinfo; undefined where there is none. */
export function readProcessor(): Processor | undefined {
  try {
    return parseProcessor(readFileSync('/proc/cpuinfo', 'utf8'));
  } catch {
    return undefined; // not Linux
  }
}

/** The first processor of a /proc/cpuinfo; undefined if it is not one of an x86 processor. */
export function parseProcessor(cpuinfo: string): Processor | undefined {
  const field = (name: string) => new RegExp(`^${name}\\s*:\\s*(.*)$`, 'm').exec(cpuinfo)?.[1];
  const [family, model, stepping] = ['cpu family', 'model', 'stepping'].map((name) => Number(field(name)));
  if (family === undefined || model === undefined || stepping === undefined || Number.isNaN(family)) return undefined;
  const words = new Set((field('flags') ?? '').split(' '));
  return { family, model, stepping, flags: importantFlags.filter((flag) => words.has(flag)) };
}

/** The fastest class of instructions that the processor has. */
export function bestClass({ flags }: Processor): InstructionClass {
  if (flags.includes('amx_tile') && flags.includes('amx_bf16')) return 'amx';
  if (flags.includes('avx512_bf16')) return 'avx512_bf16';
  return flags.includes('avx512f') ? 'avx512' : 'avx2';
}
