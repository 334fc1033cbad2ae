/** The stages of an iteration and the validation as activities: one object in, one small object out. */
import type { ActivityPorts } from '../ports/index.ts';
import type { Recompute } from '../term/recompute.ts';
import type { RunContexts, RunRef } from '../term/run-context.ts';
import { inTermOfTrainer } from '../term/trainer-terms.ts';
import { Standbys } from '../term/standbys.ts';
import { KeptScores } from '../term/kept-scores.ts';
import { WeightsPublisher } from '../term/weights.ts';
import { advantage } from './advantage.ts';
import { checkpoint } from './checkpoint.ts';
import { evaluate } from './evaluate.ts';
import { reward } from './reward.ts';
import { rollout } from './rollout.ts';
import type { StageServices } from '../services.ts';
import { update } from './update.ts';

export type { UpdateSummary } from './update.ts';

export function stageActivities(ports: ActivityPorts, contexts: RunContexts, recompute: Recompute) {
  const services: StageServices = {
    ports,
    contexts,
    recompute,
    weights: new WeightsPublisher(ports, recompute),
    standbys: new Standbys(ports, recompute),
    kept: new KeptScores(),
  };
  const guarded = <T>(ref: RunRef, stage: Promise<T>): Promise<T> =>
    inTermOfTrainer(ports, () => contexts.log(ref), ref.position, stage).catch((error: unknown) => {
      contexts.leave(ref);
      throw error;
    });
  return {
    rollout: (ref: RunRef) => guarded(ref, rollout(services, ref)),
    reward: (ref: RunRef) => guarded(ref, reward(services, ref)),
    advantage: (ref: RunRef) => guarded(ref, advantage(services, ref)),
    update: (ref: RunRef) => guarded(ref, update(services, ref)),
    evaluate: (ref: RunRef) => guarded(ref, evaluate(services, ref)),
    checkpoint: (ref: RunRef) => guarded(ref, checkpoint(services, ref)),
  };
}
