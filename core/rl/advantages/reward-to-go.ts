/** Sums of the rewards that are still to come. */
import { at } from '../../at.ts';
import { float64, valueAt } from '../float64.ts';
import { rowCount, type Numbers, type RaggedRows } from '../ragged.ts';

/**
 * G_t = r_t + γ·G⁺ at mask 1; at mask 0 the reward is dropped and G⁺ is carried without a discount, so credit jumps
 * over observations. G⁺ is the value at the next token of the row, 0 after the last.
 */
export function rewardToGo(rewards_T: Numbers, rows: RaggedRows, gamma = 1): Float64Array {
  const [rewards, mask_T] = [float64(rewards_T), float64(rows.mask_T)];
  const returns_T = new Float64Array(rewards.length);
  for (let s = 0; s < rowCount(rows); s++) {
    const start = at(rows.offsets_S1, s);
    let running = 0;
    for (let t = at(rows.offsets_S1, s + 1) - 1; t >= start; t--) {
      if (valueAt(mask_T, t) !== 0) running = valueAt(rewards, t) + gamma * running;
      returns_T[t] = running;
    }
  }
  return returns_T;
}
