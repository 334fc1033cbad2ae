/**
 * What the table of algorithms knows of a recipe beside the recipe itself: formula, paper, and what its run must show.
 */
import type { Check } from './checks.ts';

export interface AlgorithmEntry {
  /** The name that people use, such as `Dr. GRPO`. */
  readonly name: string;
  /**
   * The algorithm's own part, in plain notation; A advantage, s score of a response, ρ = π/π_old, r reward, V value.
   */
  readonly formula: string;
  readonly paper: { readonly by: string; readonly year: number; readonly arxiv: string };
  /** What its mechanism leaves in metrics and records. A run that learns without it fails. */
  readonly mechanism: readonly [Check, ...Check[]];
  /** What the run is for. Absent: greedy accuracy rises. */
  readonly result?: Result;
  /** It reads the model that another recipe trains: its name, and the key of the folder. */
  readonly needs?: { readonly recipe: string; readonly key: string };
  /** The key or the value that no run can use yet. The recipe is not run, and it must be refused. */
  readonly waitsFor?: string;
}

/** A metric whose last value must be high enough, for recipes that do not train on the arithmetic task itself. */
export interface Result {
  readonly metric: string;
  readonly atLeast: number;
}
