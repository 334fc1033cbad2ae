import type { Digest } from '../../core/ids.ts';
import type { RunRef } from '../run-context.ts';
import { trainingRollouts } from '../sampling/rollouts.ts';
import { putRollouts } from '../stage-facts.ts';
import { withoutTrainer } from '../turns.ts';
import { headOf } from './head-of.ts';
import type { StageServices } from './services.ts';

export interface RolloutsMade {
  /** The results of the rollout stage (stage-facts.ts). Absent when an earlier batch is applied again. */
  readonly fact?: Digest;
}

/** Samples responses for every draw of the iteration. */
export async function rollout(services: StageServices, ref: RunRef): Promise<RolloutsMade> {
  const { ports, contexts } = services;
  const { context, head } = await headOf(contexts, ref);
  if ((await ports.batchToAdopt(context.log, head)) !== undefined) return {};
  const results = await ports.whileHeartbeating((signal) => {
    const at = { context, head, signal };
    return withoutTrainer(services, ref, at, () => trainingRollouts(services, at));
  });
  return { fact: await putRollouts(ports, context.log, results) };
}
