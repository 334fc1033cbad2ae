/** Sizes of forward passes that contradict each other: numbers of sequences, and tokens of the reference. */
import { limitFor, tokensOfPass } from './pass.ts';
import { runKinds } from '../run-kinds.ts';
import { batchArithmetic } from './arithmetic.ts';
import { groupLossOf } from './group-losses.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

export function microBatchIssues(recipe: Recipe): RecipeIssue[] {
  return [sequencesIssue, wholeGroupIssue, referenceIssue].flatMap((check) => check(recipe) ?? []);
}

const path = 'actor.ppo_micro_batch_size_per_gpu';

function sequencesIssue({ actor }: Recipe): RecipeIssue | undefined {
  const { use_dynamic_bsz: dynamic, ppo_micro_batch_size_per_gpu: sequences } = actor;
  if (dynamic && sequences !== null)
    return {
      path,
      message: 'with actor.use_dynamic_bsz: true only tokens are counted, so this number would have no effect',
      expected: 'null',
      received: `${sequences}`,
      hint: 'add actor.use_dynamic_bsz=false, or leave it out',
    };
  if (dynamic || sequences !== null) return undefined;
  return {
    path,
    message: 'with actor.use_dynamic_bsz: false a forward pass has a given number of sequences',
    expected: 'integer >= 1',
    received: 'null',
    hint: `add ${path}=8, or leave actor.use_dynamic_bsz out`,
  };
}

/** What a loss reads together is one forward pass. */
function wholeGroupIssue(recipe: Recipe): RecipeIssue | undefined {
  const { use_dynamic_bsz: dynamic, ppo_micro_batch_size_per_gpu: sequences } = recipe.actor;
  if (dynamic || sequences === null) return undefined;
  const isPairs = runKinds[recipe.kind].rows === 'pairs';
  const loss = isPairs ? `kind: ${recipe.kind}` : recipe.kind === 'rl' ? groupLossOf(recipe) : undefined;
  const together = isPairs ? 2 : batchArithmetic(recipe).responsesPerPrompt;
  if (loss === undefined || sequences >= together) return undefined;
  return {
    path,
    message: `${loss} reads ${together} responses to a prompt in one forward pass`,
    expected: `integer >= ${together}`,
    received: `${sequences}`,
    hint: `use ${path}=${together}`,
  };
}

function referenceIssue(recipe: Recipe): RecipeIssue | undefined {
  const limit = recipe.ref.log_prob_max_token_len_per_gpu;
  const { longestSequence } = batchArithmetic(recipe);
  if (limit === null || tokensOfPass(recipe, limit) >= longestSequence) return undefined;
  const least = limitFor(longestSequence, recipe);
  return {
    path: 'ref.log_prob_max_token_len_per_gpu',
    message: `one sequence may have ${longestSequence} tokens, more than one forward pass of the reference takes (${tokensOfPass(recipe, limit)})`,
    expected: `integer >= ${least}`,
    received: `${limit}`,
    hint: `use ref.log_prob_max_token_len_per_gpu=${least} or more, or leave it out`,
  };
}
