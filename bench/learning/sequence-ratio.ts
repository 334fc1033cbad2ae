/**
 * The policy loss of TRL's RLOOTrainer, as a loss of one's own (docs/learn/change-a-loss.md): PPO's clip on the ratio
 * of a whole response. With ρ_s = exp(Σ_t log π − Σ_t log π_old):
 *
 *   L = mean_s max(−A_s·ρ_s, −A_s·clip(ρ_s, 1 − low, 1 + high))
 *
 * A_s is the advantage at the first valid token of the response. It needs `loss_agg_mode: seq-mean-token-sum`. The
 * built-in losses have other ratios: `vanilla` one for each token, and `gspo` the mean of a response's log-ratios in
 * place of their sum. With one optimiser step for a batch all ratios are 1, and the gradient is that of `vanilla`.
 */
import type { OwnPolicyLoss } from '../../core/rl/own/types.ts';

export const loss: OwnPolicyLoss = {
  scope: 'sequence',
  needs: [],
  deterministic: true,
  compute({ rows: { offsets_S1, mask_T }, logProb_T, settings, aggregate }, { oldLogProb_T, advantages_T }) {
    const loss_T = new Float64Array(logProb_T.length);
    const derivative_T = new Float64Array(logProb_T.length);
    const first_T = new Int32Array(logProb_T.length);
    for (let s = 0; s + 1 < offsets_S1.length; s++) {
      const [from, to] = [Number(offsets_S1[s]), Number(offsets_S1[s + 1])];
      const first = mask_T.subarray(from, to).indexOf(1) + from;
      if (first < from) continue;
      let logRatio = 0;
      for (let t = from; t < to; t++) if (mask_T[t] === 1) logRatio += Number(logProb_T[t]) - Number(oldLogProb_T[t]);
      const ratio = Math.exp(logRatio);
      const unclipped = -Number(advantages_T[first]) * ratio;
      const bounded =
        -Number(advantages_T[first]) * Math.min(Math.max(ratio, 1 - settings.clipRatioLow), 1 + settings.clipRatioHigh);
      // The loss of the response is at its first token; its derivative is the same by the log-prob of each token.
      loss_T[first] = Math.max(unclipped, bounded);
      for (let t = from; t < to; t++) {
        derivative_T[t] = mask_T[t] === 1 && bounded <= unclipped ? unclipped : 0;
        first_T[t] = first;
      }
    }
    const { value, weights_T } = aggregate(loss_T);
    return { loss: value, dLogProb_T: derivative_T.map((slope, t) => slope * Number(weights_T[Number(first_T[t])])) };
  },
};
