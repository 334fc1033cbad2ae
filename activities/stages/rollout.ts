import type { RunRef } from '../term/run-context.ts';
import { trainingRollouts } from '../sampling/rollouts.ts';
import { withoutTrainer } from './turns.ts';
import { beginStage, besideLook } from './begin-stage.ts';
import type { StageServices } from '../services.ts';

/** Samples responses for every draw of the iteration. */
export async function rollout(services: StageServices, ref: RunRef): Promise<void> {
  const stage = await beginStage(services.contexts, ref);
  if ((await services.ports.batchToAdopt(stage.context.log, stage.head)) !== undefined) return;
  await besideLook(services, stage, (signal) => {
    const at = { ...stage, signal };
    return withoutTrainer(services, ref, at, () => trainingRollouts(services, at));
  });
}
