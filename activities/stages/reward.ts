import type { Digest } from '../../core/ids.ts';
import type { RunRef } from '../run-context.ts';
import { withScoredRollouts } from '../sampling/scored-rollouts.ts';
import { putRewards } from '../stage-facts.ts';
import { headOf } from './head-of.ts';
import type { StageServices } from './services.ts';

export interface RewardsMade {
  /** The results of the reward stage (stage-facts.ts). Absent when an earlier batch is applied again. */
  readonly fact?: Digest;
}

/**
 * Scores every response of the iteration. It runs in parallel with rollout and waits for the same rollout jobs, so the
 * first responses are scored while the last ones are sampled.
 */
export async function reward(services: StageServices, ref: RunRef): Promise<RewardsMade> {
  const { ports, contexts } = services;
  const { context, head } = await headOf(contexts, ref);
  if ((await ports.batchToAdopt(context.log, head)) !== undefined) return {};
  const scored = await ports.whileHeartbeating((signal) =>
    withScoredRollouts(services, { context, head, signal }, 'train', async (all) => all),
  );
  return { fact: await putRewards(ports, context.log, scored) };
}
