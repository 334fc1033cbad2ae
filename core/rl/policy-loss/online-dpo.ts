/**
 * Online DPO, also SPIN's loss (verl-recipe: `spin`; Chen et al. 2024, arXiv 2401.01335; Guo et al. 2024, arXiv
 * 2402.04792): of two sampled responses to a prompt, the one with the higher score is preferred, and preference-loss.ts
 * applies. The loss is the mean over pairs. Advantages, old log-probs and the aggregation mode are not used.
 */
import { at } from '../../at.ts';
import { rowMeanWeight } from '../aggregate.ts';
import { dpoPairs, preferenceLoss } from '../preference-loss.ts';
import { InvalidInputError } from '../../errors.ts';
import { rowCount } from '../ragged.ts';
import { rowSums, spreadOverRow } from '../row-sums.ts';
import { columnsOf, needed } from './columns.ts';
import { LOSS_NEEDS } from '../names.ts';
import type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

export const onlineDpo: PolicyLoss = { scope: 'group', needs: LOSS_NEEDS.online_dpo, compute };

function compute(input: PolicyLossInput, config: PolicyLossConfig): PolicyLossResult {
  const scores_S = needed(input.scores_S, 'online_dpo', 'scores');
  const groups_S = needed(input.groups_S, 'online_dpo', 'groups');
  const refLogProb_T = needed(input.refLogProb_T, 'online_dpo', 'refLogProbs');
  const { tokens, rows, mask_T, logProb_T } = columnsOf(input);
  if (scores_S.length !== rowCount(rows) || groups_S.length !== rowCount(rows)) {
    throw new InvalidInputError(
      `online_dpo got ${scores_S.length} scores and ${groups_S.length} groups for ${rowCount(rows)} rows`,
    );
  }
  const pairs = dpoPairs(scores_S, groups_S);
  const [policy_S, reference_S] = [rowSums(logProb_T, rows), rowSums(refLogProb_T, rows)];
  const paired = (values_S: Float64Array) => ({
    chosen_G: pairs.map(({ chosen }) => at(values_S, chosen)),
    rejected_G: pairs.map(({ rejected }) => at(values_S, rejected)),
  });
  const { loss, dChosen_G, accuracy, margin } = preferenceLoss(
    { ...paired(policy_S), reference: paired(reference_S) },
    {
      beta: config.dpoBeta ?? 0.1,
      lossType: config.dpoLossType ?? 'sigmoid',
      labelSmoothing: config.dpoLabelSmoothing,
      pairWeight: 2 * rowMeanWeight(config.totals, rowCount(rows)),
    },
  );
  const dLogProb_T = new Float64Array(tokens);
  for (let g = 0; g < pairs.length; g++) {
    spreadOverRow(at(dChosen_G, g), at(pairs, g).chosen, rows, mask_T, dLogProb_T);
    spreadOverRow(-at(dChosen_G, g), at(pairs, g).rejected, rows, mask_T, dLogProb_T);
  }
  return { loss, dLogProb_T, metrics: { 'actor/dpo_accuracy': accuracy, 'actor/dpo_margin': margin } };
}
