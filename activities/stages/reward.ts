import type { RunRef } from '../term/run-context.ts';
import { withScoredRollouts } from '../sampling/scored-rollouts.ts';
import { beginStage, besideLook } from './begin-stage.ts';
import type { StageServices } from '../services.ts';

/**
 * Scores every response of the iteration. It runs in parallel with rollout and waits for the same rollout jobs, so the
 * first responses are scored while the last ones are sampled.
 */
export async function reward(services: StageServices, ref: RunRef): Promise<void> {
  const stage = await beginStage(services.contexts, ref);
  if ((await services.ports.batchToAdopt(stage.context.log, stage.head)) !== undefined) return;
  const scored = await besideLook(services, stage, (signal) =>
    withScoredRollouts(services, { ...stage, signal }, 'train', async (all) => all),
  );
  services.kept.keep(stage, scored);
}
