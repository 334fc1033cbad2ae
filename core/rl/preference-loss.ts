/**
 * Losses over pairs of responses to one prompt, of which one is preferred: DPO (Rafailov et al. 2023, arXiv 2305.18290)
 * with label smoothing (Mitchell 2023, "A note on DPO with noisy preferences"), and IPO (Azar et al. 2023, arXiv
 * 2310.12036); verl-recipe: `compute_online_dpo_loss` of SPIN. With sums of log-probs over a response, c chosen and r
 * rejected,
 *
 *   z = (log π(c) − log π(r)) − (log π_ref(c) − log π_ref(r))
 *   sigmoid   −(1 − ls)·log σ(β·z) − ls·log σ(−β·z)
 *   ipo       (z − 1/(2β))², without label smoothing
 *
 * `dpoPairs` chooses among the sampled responses of each prompt, for online DPO.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { square } from '../math/square.ts';
import { rowsByGroup } from './advantages/groups.ts';
import { logSigmoid, sigmoid } from './log-sigmoid.ts';
import { PREFERENCE_LOSS_TYPES } from './names.ts';
import type { Numbers } from './ragged.ts';

/** Log-probs of whole responses, one pair per prompt. */
export interface PreferencePairs {
  readonly chosen_G: Numbers;
  readonly rejected_G: Numbers;
  /** Log-probs under the reference policy. Absent: a reference that gives both responses the same probability. */
  readonly reference?: { readonly chosen_G: Numbers; readonly rejected_G: Numbers } | undefined;
}

export interface PreferenceLossConfig {
  /** 0.1. */
  readonly beta: number;
  readonly lossType: string;
  /** 0; the share of labels that are taken to be wrong. */
  readonly labelSmoothing?: number | undefined;
  /** Weight of a pair; absent: 1 / pairs, the mean. */
  readonly pairWeight?: number | undefined;
}

export interface PreferenceLoss {
  readonly loss: number;
  /** d loss / d chosen_G. The derivative by rejected_G is its negative. */
  readonly dChosen_G: Float64Array;
  /**
   * Share of pairs with z > 0: the policy prefers the chosen response more than the reference does. NaN without pairs.
   */
  readonly accuracy: number;
  /** Mean of β·z: by how much the implicit reward of the chosen response is larger. NaN without pairs. */
  readonly margin: number;
}

/** @throws InvalidInputError for an unknown loss type, a β that isn't positive, or arrays of different lengths */
export function preferenceLoss(pairs: PreferencePairs, config: PreferenceLossConfig): PreferenceLoss {
  const { beta } = config;
  const lossOf = pairLoss(config);
  const count = pairs.chosen_G.length;
  requirePairs(pairs);
  const weight = config.pairWeight ?? 1 / count;
  const dChosen_G = new Float64Array(count);
  let [loss, right, margins] = [0, 0, 0];
  for (let g = 0; g < count; g++) {
    const ofReference =
      pairs.reference === undefined ? 0 : at(pairs.reference.chosen_G, g) - at(pairs.reference.rejected_G, g);
    const z = at(pairs.chosen_G, g) - at(pairs.rejected_G, g) - ofReference;
    const { value, slope } = lossOf(z);
    loss += value;
    dChosen_G[g] = slope * weight;
    if (z > 0) right++;
    margins += beta * z;
  }
  return { loss: loss * weight, dChosen_G, accuracy: right / count, margin: margins / count };
}

/** Loss and derivative of one pair as functions of z. */
function pairLoss({ beta, lossType, labelSmoothing = 0 }: PreferenceLossConfig) {
  if (!(beta > 0)) throw new InvalidInputError(`the beta of a preference loss must be greater than 0, got ${beta}`);
  switch (lossType) {
    case 'sigmoid':
      return (z: number) => ({
        value: -(1 - labelSmoothing) * logSigmoid(beta * z) - labelSmoothing * logSigmoid(-beta * z),
        slope: beta * (labelSmoothing * sigmoid(beta * z) - (1 - labelSmoothing) * sigmoid(-beta * z)),
      });
    case 'ipo':
      return (z: number) => ({ value: square(z - 1 / (2 * beta)), slope: 2 * (z - 1 / (2 * beta)) });
    default:
      throw new InvalidInputError(`unknown preference loss "${lossType}"`, {
        hint: `one of ${PREFERENCE_LOSS_TYPES.join(', ')}`,
      });
  }
}

function requirePairs({ chosen_G, rejected_G, reference }: PreferencePairs): void {
  const lengths = [rejected_G, reference?.chosen_G, reference?.rejected_G].map((values) => values?.length);
  if (lengths.some((length) => length !== undefined && length !== chosen_G.length)) {
    throw new InvalidInputError(
      `pairs need equally many log-probs of each kind, got ${[chosen_G.length, ...lengths].join(', ')}`,
    );
  }
}

export interface ResponsePair {
  readonly chosen: number;
  readonly rejected: number;
}

/**
 * The two rows of each group, ordered by score (verl-recipe: `compute_onlinedpo_pref`). With equal scores the first is
 * chosen.
 * @throws InvalidInputError when a group has not exactly two rows
 */
export function dpoPairs(scores_S: Numbers, groups_S: ArrayLike<unknown>): ResponsePair[] {
  return Array.from(rowsByGroup(groups_S).values(), (members) => {
    if (members.length !== 2) {
      throw new InvalidInputError(`online DPO compares two responses to a prompt, got ${members.length}`, {
        hint: 'set rollout.n to 2',
      });
    }
    const [first, second] = [at(members, 0), at(members, 1)];
    const firstWins = at(scores_S, first) >= at(scores_S, second);
    return { chosen: firstWins ? first : second, rejected: firstWins ? second : first };
  });
}
