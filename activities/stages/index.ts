/** The stages of an iteration and the validation as activities: one object in, one small object out. */
import type { ActivityPorts } from '../ports.ts';
import type { Recompute } from '../recompute.ts';
import type { RunContexts, RunRef } from '../run-context.ts';
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
  const services: StageServices = { ports, contexts, recompute, weights: new WeightsPublisher(ports, recompute) };
  return {
    rollout: (ref: RunRef) => rollout(services, ref),
    reward: (ref: RunRef) => reward(services, ref),
    advantage: (ref: RunRef & { readonly facts?: StageFacts }) => advantage(services, ref),
    update: (ref: RunRef) => update(services, ref),
    evaluate: (ref: RunRef) => evaluate(services, ref),
    checkpoint: (ref: RunRef) => checkpoint(services, ref),
  };
}
