export {
  arithmeticIssues,
  batchArithmetic,
  mostWaves,
  nearestDivisors,
  promptsPerIteration,
  promptsPerWave,
  totalIterations,
  type BatchArithmetic,
} from './arithmetic.ts';
export { recipeChanges, valueOf, type RecipeChange } from './changes.ts';
export { isDue, isValidationDue } from './due.ts';
export {
  hasOwnSampler,
  readsReference,
  readsValues,
  rewardComponentsOf,
  scoresLists,
  rewardManagerOf,
  teacherOf,
  tracksPrompts,
  trainedComponents,
  trainedTogether,
} from './components.ts';
export { explain, type Explanation } from './explain.ts';
export { InvalidRecipeError, issueHint, issueLine, type RecipeIssue } from './issues.ts';
export { recipeJsonSchema } from './json-schema.ts';
export type { ChangeClass, KeyDoc } from './key.ts';
export { recipeKey, recipeKeys, recipeSections, type RecipeKey, type RecipeSection } from './keys.ts';
export { isTree, mergeTrees, removeAt, setAt, type Tree } from './merge.ts';
export { applyOverrides, parseOverride, type Override } from './override.ts';
export { checkRecipe, parseRecipe, parseStoredRecipe, type RecipeResult } from './parse.ts';
export { promises, type Promises } from './promises.ts';
export {
  ownModuleIssues,
  type OwnModuleKind,
  ownModuleKeys,
  ownModuleKinds,
  ownModulePath,
} from './own-modules.ts';
export { recipeReference } from './reference.ts';
export { trainsAdapter } from './lora-issues.ts';
export { loggersOf } from './not-built.ts';
export { assertRunnable, runIssues } from './runnable.ts';
export { recipeSchema, type Recipe, type RecipeInput } from './schema.ts';
export { endpointSettings } from './endpoint-settings.ts';
export { samplerEngine, samplingServer, samplingSettings } from './sampling.ts';
export { scorerSettings } from './scorer-settings.ts';
export { isSecretReference } from './secrets.ts';
export { showValue } from './show-value.ts';
