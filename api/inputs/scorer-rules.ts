/** What the built-in scorers of a recipe need: of the recipe, of this machine, and of the rows. */
import { samplesResponses } from '../../core/run-kinds.ts';
import { InvalidInputError, PetrelError, UnfitError, type ErrorDetail } from '../../core/errors.ts';
import { scorerSettings, type Recipe } from '../../core/recipe/index.ts';
import { rowError, type Row, type RowPlace } from '../../models/dataset.ts';
import { prepareScorer } from '../../rewards/host/prepare-scorer.ts';
import { builtinScorer, isKnownScorer, scorerNameFor } from '../../rewards/registry.ts';
import type { CallLimits } from '../../rewards/types.ts';

/** Limits of one call of the recipe's scorer. */
export const scorerLimits = ({ reward }: Recipe): CallLimits => ({
  timeoutMs: reward.timeout * 1000,
  memoryMb: reward.memory_limit_mb,
});

/**
 * @throws InvalidInputError for an unknown scorer, and for one that is not declared deterministic in a deterministic
 *   run; UnfitError when this machine lacks what it needs.
 */
export function assertScorer(recipe: Recipe, name: string): void {
  if (recipe.deterministic === true && !builtinScorer(name).deterministic) {
    throw new InvalidInputError(
      `the scorer ${name} is not declared deterministic: it has time limits, so its scores may depend on the machine's speed`,
      { hint: 'write deterministic: replay, or choose another scorer' },
    );
  }
  prepareScorer(name, scorerSettings(recipe), scorerLimits(recipe));
}

/** What a scorer reads of a row, and where the row is. */
type ScoredRow = RowPlace & Pick<Row, 'dataSource' | 'groundTruth'>;

/** Name of the built-in scorer of a row. @throws InvalidInputError when there is none. */
export const scorerOfRow = ({ reward }: Recipe, { dataSource }: Pick<Row, 'dataSource'>): string =>
  reward.scorer ?? scorerNameFor(dataSource);

/**
 * A check of rows, in their order. It adds the names of their scorers to `scorers`. With the row's number, the check
 * throws as `assertScorer` for a scorer that the row chose, and InvalidInputError for a ground truth that the scorer
 * cannot use.
 */
export function scorerRules(recipe: Recipe, scorers: Set<string>): (row: ScoredRow) => void {
  const { scorer: named, custom_reward_function: custom } = recipe.reward;
  // A named scorer that does not exist is no fault of the rows: `assertScorer` refuses it.
  const isUnknown = named !== null && !isKnownScorer(named);
  if (!samplesResponses(recipe.kind) || custom.path !== null || isUnknown) return () => undefined;
  return (row) =>
    inRow(row, () => {
      const name = scorerOfRow(recipe, row);
      if (named === null && !scorers.has(name)) assertScorer(recipe, name);
      scorers.add(name);
      builtinScorer(name).checkTruth(row.groundTruth);
    });
}

/** Names the row in an error. */
function inRow(row: RowPlace, look: () => void): void {
  try {
    look();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const named = rowError(row, error.message, error, error instanceof PetrelError ? error.hint : undefined);
    throw error instanceof UnfitError ? new UnfitError(error.code, named.message, detailOf(named)) : named;
  }
}

const detailOf = ({ hint, where, cause }: PetrelError): ErrorDetail => ({
  cause,
  ...(hint !== undefined && { hint }),
  ...(where !== undefined && { where }),
});
