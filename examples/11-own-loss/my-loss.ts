/**
 * A soft bound in place of PPO's clip. With the ratio ρ = exp(log π − log π_old) and the advantage A:
 *
 *   L = −A·ρ + ½·strength·(ρ − 1)²
 *
 * A clip stops the gradient at 1 ± 0.2; this bound pulls ρ back towards 1, the more the further away it is.
 */
import type { OwnPolicyLoss } from 'petrel';

const strength = 2;

export const loss: OwnPolicyLoss = {
  scope: 'token',
  needs: [],
  deterministic: true,
  compute({ rows, logProb_T, settings }, { oldLogProb_T, advantages_T }) {
    const tokens = logProb_T.length;
    const loss_T = new Float64Array(tokens);
    const dLoss_T = new Float64Array(tokens);
    let [far, valid] = [0, 0];
    for (let t = 0; t < tokens; t++) {
      const ratio = Math.exp(logProb_T[t] - oldLogProb_T[t]);
      loss_T[t] = -advantages_T[t] * ratio + 0.5 * strength * (ratio - 1) ** 2;
      // d ratio / d log π = ratio
      dLoss_T[t] = -advantages_T[t] * ratio + strength * (ratio - 1) * ratio;
      if (rows.mask_T[t] === 0) continue;
      valid += 1;
      if (ratio < 1 - settings.clipRatioLow || ratio > 1 + settings.clipRatioHigh) far += 1;
    }
    return { loss_T, dLoss_T, metrics: { far: far / Math.max(1, valid) } };
  },
};
