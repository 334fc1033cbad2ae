/**
 * Several outputs per agent session (verl: `compute_advantage_for_multi_trajectories`). Only the final output of a
 * session has the outcome, so only it enters the statistics of its group; every output of the session then gets its
 * advantage. A final output without a valid token gives 0: verl reads the advantage from its first valid token.
 */
import { at } from '../../at.ts';
import type { Numbers } from '../ragged.ts';
import { rowsByGroup } from './groups.ts';
import { requireSamples } from './inputs.ts';
import { lastValidToken } from './outcomes.ts';
import type { AdvantageBatch, SessionOutputs } from './types.ts';

/** Advantage of each sample. `estimate` sees the scores and groups of the final outputs only. */
export function overFinalOutputs(
  batch: AdvantageBatch,
  sessions: SessionOutputs,
  scores_S: Numbers,
  estimate: (scores_S: Float64Array, groups_S: readonly unknown[]) => Float64Array,
): Float64Array {
  requireSamples('sessions', sessions.sessions_S, batch);
  requireSamples('outputs', sessions.outputs_S, batch);
  const outputs = [...rowsByGroup(sessions.sessions_S).values()];
  const finals = outputs.map((members) => finalOutput(members, sessions.outputs_S));
  const estimated = estimate(
    Float64Array.from(finals, (s) => at(scores_S, s)),
    finals.map((s) => batch.groups_S[s]),
  );
  const advantages_S = new Float64Array(scores_S.length);
  outputs.forEach((members, i) => {
    const advantage = lastValidToken(batch.rows, at(finals, i)) === -1 ? 0 : at(estimated, i);
    for (const s of members) advantages_S[s] = advantage;
  });
  return advantages_S;
}

/** The first one with the highest number. */
function finalOutput(members: readonly number[], outputs_S: Numbers): number {
  return members.reduce((final, s) => (at(outputs_S, s) > at(outputs_S, final) ? s : final));
}
