/** Modules of the user's own are loaded and tried, and what the check of a gradient found is shown. */
import { counted } from '../../core/quantities.ts';
import { ownModulePath } from '../../core/recipe/index.ts';
import type { OwnModuleKind } from '../../core/recipe/index.ts';
import type { CheckedModule } from '../inputs/own-modules.ts';
import type { Check } from './checks.ts';

const checkOf = (kind: OwnModuleKind, name: string): Check => ({
  name,
  look: async (inputs) => {
    if (ownModulePath(inputs.recipe, kind) === undefined) return undefined;
    const module = (await inputs.ownModules()).find((one) => one.kind === kind);
    return module && { detail: detailOf(module) };
  },
});

export const ownModuleChecks: readonly Check[] = [
  checkOf('loss', 'your loss'),
  checkOf('estimator', 'your estimator'),
  checkOf('sampler', 'your sampler'),
];

function detailOf({ kind, input, gradient, straightThrough }: CheckedModule): string {
  const name = `./${input.fileName}`;
  if (kind === 'sampler') return `${name} can be loaded; it is asked about the rows when the run is created`;
  if (gradient === undefined) return `${name} gives the same finite advantages twice on trial batches`;
  const { batches, tokens, kinks, disagreeing, largest } = gradient;
  const compared = `${tokens - kinks} of ${counted(tokens, 'token')} of ${batches} trial batches, ${kinks} at kinks left out`;
  const difference = `largest difference ${largest.difference.toPrecision(2)}`;
  if (straightThrough === undefined)
    return `${name}: its gradient is the derivative of its loss (${compared}; ${difference})`;
  const what = straightThrough === true ? 'declared' : `declared: ${straightThrough}`;
  return `${name}: straight-through terms (${what}), so its gradient differs from the derivative at ${disagreeing} tokens (${compared}; ${difference})`;
}
