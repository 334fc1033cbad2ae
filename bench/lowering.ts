/** Runs both sides as a lower class of processor would: petrel by PETREL_ISA, torch and its libraries by theirs. */
import { InvalidInputError } from '../core/errors.ts';
import { instructionClasses } from '../native/index.ts';
import type { InstructionClass } from '../native/index.ts';

/** What each variable must be, by class. The last three are torch's. */
const values = {
  PETREL_ISA: { avx2: 'avx2', avx512: 'avx512', avx512_bf16: 'avx512_bf16', amx: 'amx' },
  ONEDNN_MAX_CPU_ISA: {
    avx2: 'AVX2',
    avx512: 'AVX512_CORE',
    avx512_bf16: 'AVX512_CORE_BF16',
    amx: 'AVX512_CORE_AMX',
  },
  MKL_ENABLE_INSTRUCTIONS: { avx2: 'AVX2', avx512: 'AVX512', avx512_bf16: 'AVX512_E3', amx: 'AVX512_E4' },
  ATEN_CPU_CAPABILITY: { avx2: 'avx2', avx512: 'avx512', avx512_bf16: 'avx512', amx: 'avx512' },
} as const satisfies Readonly<Record<string, Readonly<Record<InstructionClass, string>>>>;

type Variable = keyof typeof values;

const variables = Object.keys(values) as Variable[];

/**
 * Sets the variables of both sides in `env`, for this process and those that it starts, before the engine is loaded.
 */
export function lowerBothSides(name: string, env: NodeJS.ProcessEnv): void {
  const lower = instructionClasses.find((known) => known === name && known !== 'amx');
  if (lower === undefined)
    throw new InvalidInputError(`--class ${name}: expected avx2, avx512 or avx512_bf16`, {
      hint: 'without --class both sides use what the processor has',
    });
  for (const variable of variables) env[variable] = values[variable][lower];
}

/** Tells the reader of a table which side computes below `best`, and why. Undefined if none does. */
export function describeLowering(env: NodeJS.ProcessEnv, best: InstructionClass): string | undefined {
  const lowering = variables.filter((variable) => lowers(variable, env[variable] ?? '', best));
  if (lowering.length === 0) return undefined;
  const ours = lowering.includes('PETREL_ISA');
  const peers = lowering.some((variable) => variable !== 'PETREL_ISA');
  const sides = ours && peers ? 'both sides' : ours ? 'petrel only' : 'the peer only';
  return `lowered: ${sides} (${lowering.map((variable) => `${variable}=${env[variable]}`).join(', ')})`;
}

/** An unknown value counts as lowering, except those with which oneDNN uses what there is. */
function lowers(variable: Variable, value: string, best: InstructionClass): boolean {
  if (value === '') return false;
  if (variable === 'ONEDNN_MAX_CPU_ISA' && /^(default|all)$|amx/i.test(value)) return false;
  const reached = instructionClasses.findLastIndex(
    (name) => values[variable][name].toLowerCase() === value.toLowerCase(),
  );
  return reached < instructionClasses.indexOf(best);
}
