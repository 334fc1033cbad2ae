/**
 * The inputs of a policy loss in the form that its loops read. The arrays are scratch: none may be in the loss's
 * result.
 */
import { scratchFloat64 } from '../scratch.ts';
import { InvalidInputError } from '../../errors.ts';
import { countedRows, requireTokens, tokenCount, type RaggedRows } from '../ragged.ts';
import type { LossNeed } from '../names.ts';
import type { PolicyLossInput } from './types.ts';

export interface LossColumns {
  readonly tokens: number;
  /** The rows of the input, with the mask below and its counts, so that later code need not make them again. */
  readonly rows: RaggedRows;
  readonly mask_T: Float64Array;
  /** Σ mask: what shares of tokens divide by. */
  readonly valid: number;
  readonly logProb_T: Float64Array;
  readonly oldLogProb_T: Float64Array;
  readonly advantages_T: Float64Array;
  /** The same array as logProb_T unless a finite difference is taken. */
  readonly detachedLogProb_T: Float64Array;
}

/** @throws InvalidInputError when an array has another length than the rows */
export function columnsOf(input: PolicyLossInput): LossColumns {
  const tokens = tokenCount(input.rows);
  requireTokens('mask', input.rows.mask_T, tokens);
  requireTokens('log-probs', input.logProb_T, tokens);
  requireTokens('old log-probs', input.oldLogProb_T, tokens);
  requireTokens('advantages', input.advantages_T, tokens);
  if (input.detachedLogProb_T !== undefined) requireTokens('detached log-probs', input.detachedLogProb_T, tokens);
  const rows = countedRows(input.rows);
  const logProb_T = scratchFloat64(input.logProb_T);
  return {
    tokens,
    rows,
    mask_T: rows.mask_T,
    valid: rows.counts_S.reduce((total, count) => total + count, 0),
    logProb_T,
    oldLogProb_T: scratchFloat64(input.oldLogProb_T),
    advantages_T: scratchFloat64(input.advantages_T),
    detachedLogProb_T: input.detachedLogProb_T === undefined ? logProb_T : scratchFloat64(input.detachedLogProb_T),
  };
}

/** @throws InvalidInputError when the input is absent */
export function needed<T>(value: T | undefined, loss: string, need: LossNeed): T {
  if (value !== undefined) return value;
  throw new InvalidInputError(`the policy loss ${loss} needs ${WHAT[need]}`, {
    hint: 'this is an error of the caller',
  });
}

const WHAT: Readonly<Record<LossNeed, string>> = {
  groups: 'the prompt of each row (groups_S)',
  scores: 'the score of each row (scores_S)',
  rolloutLogProbs: 'log-probs recorded while sampling (rolloutLogProb_T)',
  refLogProbs: 'log-probs of the reference policy (refLogProb_T)',
  logZ: 'the log partition function of each row (logZ_S)',
  seed: 'a seed for its random choice of tokens (seed)',
};

/** verl's masked mean of a sum that was taken over valid tokens only: 0 when there is none. */
export function tokenMean(sumOfValid: number, valid: number): number {
  return sumOfValid / (valid + 1e-8);
}
