/** The stages of an iteration and the validation as activities: one object in, one small object out. */
import type { ActivityPorts } from '../ports.ts';
import type { Recompute } from '../recompute.ts';
import type { RunContexts, RunRef } from '../run-context.ts';
import { inTermOfTrainer } from '../trainer-terms.ts';
import { Standbys } from '../standbys.ts';
import { WeightsPublisher } from '../sampling/weights.ts';
import type { StageFacts } from '../stage-facts.ts';
import { advantage } from './advantage.ts';
import { checkpoint } from './checkpoint.ts';
import { evaluate } from './evaluate.ts';
import { reward } from './reward.ts';
import { rollout } from './rollout.ts';
import type { StageServices } from './services.ts';
import { update } from './update.ts';

export type { UpdateSummary } from './update.ts';

export function stageActivities(ports: ActivityPorts, contexts: RunContexts, recompute: Recompute) {
  const services: StageServices = {
    ports,
    contexts,
    recompute,
    weights: new WeightsPublisher(ports, recompute),
    standbys: new Standbys(ports, recompute),
  };
  const guarded = <T>(ref: RunRef, stage: Promise<T>): Promise<T> =>
    inTermOfTrainer(ports, () => contexts.log(ref), ref.position, stage);
  return {
    rollout: (ref: RunRef) => guarded(ref, rollout(services, ref)),
    reward: (ref: RunRef) => guarded(ref, reward(services, ref)),
    advantage: (ref: RunRef & { readonly facts?: StageFacts }) => guarded(ref, advantage(services, ref)),
    update: (ref: RunRef) => guarded(ref, update(services, ref)),
    evaluate: (ref: RunRef) => guarded(ref, evaluate(services, ref)),
    checkpoint: (ref: RunRef) => guarded(ref, checkpoint(services, ref)),
  };
}
