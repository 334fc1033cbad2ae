import { builtinScorer } from '../registry.ts';
import type { CallLimits, ScorerSettings } from '../types.ts';
import { checkPackagesHere } from './python-scorers.ts';

/**
 * Makes sure that a built-in scorer can work on this machine. @throws InvalidInputError for an unknown scorer and for
 * settings that it refuses; UnfitError, with what to type, when the machine lacks its Python packages or a sandbox.
 */
export function prepareScorer(name: string, settings: ScorerSettings, limits: CallLimits): void {
  const scorer = builtinScorer(name);
  if (scorer.type === 'python') checkPackagesHere(name);
  else if (scorer.type === 'function') scorer.prepare?.(settings, limits);
}
