/** The plans of the engines. An engine that can plan where it does not run is one line here. */
import type { EnginePlans } from '../core/ports/engine-plans.ts';
import { nativePlans } from '../native/model/plans.ts';
import { readModelFacts } from './engine-memory/model-facts.ts';
import { hfPlans, vllmPlans } from './engine-memory/samplers.ts';
import { torchPlans } from './engine-memory/torch.ts';

const plans: Readonly<Record<string, EnginePlans>> = {
  native: nativePlans,
  torch: torchPlans,
  hf: hfPlans,
  vllm: vllmPlans,
};

/** What is known of a model whose engine plans nothing: what its config.json says. */
const general: EnginePlans = { readModel: readModelFacts };

/** `engine`: its name in a recipe, `trainer.engine` or `rollout.name`. */
export const plansOf = (engine: string): EnginePlans => plans[engine] ?? general;
