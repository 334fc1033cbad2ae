/** The result of one recipe with one seed. */
import type { Judgement } from './judge.ts';

export interface AlgorithmResult {
  readonly recipe: string;
  readonly seed: number;
  readonly passed: boolean;
  readonly seconds?: number;
  readonly processorSeconds?: number;
  readonly iterations?: number;
  readonly judgement?: Judgement;
  /** Why there is no judgement, or what is wrong beside it. */
  readonly errors: readonly string[];
}

/** A sentence for each thing that is wrong. */
export function failuresOf({ judgement, errors }: AlgorithmResult): string[] {
  const failed = (judgement?.checks ?? []).filter(({ ok }) => !ok);
  return [
    ...errors,
    ...failed.map(({ text, value }) => `expected ${text}, got ${value === null ? 'no value' : showNumber(value)}`),
  ];
}

export const showNumber = (value: number): string => String(Number(value.toPrecision(3)));
