/** The plans of the engines. An engine that can plan where it does not run is one line here. */
import type { EnginePlans } from '../core/ports/engine-plans.ts';
import { generalFacts } from '../models/config.ts';
import { readConfigJson } from '../models/folder.ts';
import { nativePlans } from '../native/model/plans.ts';

const plans: Readonly<Record<string, EnginePlans>> = { native: nativePlans };

/** What is known of a model whose engine plans nothing: what its config.json says. */
const general: EnginePlans = {
  readModel: async ({ folder }) => generalFacts(await readConfigJson(folder), `${folder}/config.json`),
};

/** `engine`: its name in a recipe, `trainer.engine`. */
export const plansOf = (engine: string): EnginePlans => plans[engine] ?? general;
