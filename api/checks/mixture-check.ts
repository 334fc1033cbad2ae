/** The auxiliary loss of a mixture of experts: whether the model has one. */
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { readConfigJson } from '../../models/folder.ts';
import { familiesWithRouterLoss } from '../../models/mixtures.ts';
import type { Check } from './checks.ts';

export const mixtureCheck: Check = {
  name: 'mixture',
  look: async (inputs) => {
    const weight = inputs.recipe.actor.router_aux_loss_coef;
    if (weight === 0) return undefined;
    const { folder } = await inputs.model();
    const family = String((await readConfigJson(folder))['model_type']);
    if (familiesWithRouterLoss.has(family)) return { detail: `${family}, with its auxiliary loss times ${weight}` };
    throw new InvalidInputError(
      `${join(folder, 'config.json')}: expected a mixture of experts of which transformers has an auxiliary loss, such as qwen3_moe, mixtral or gpt_oss, found ${family}`,
      { where: 'actor.router_aux_loss_coef', hint: 'set actor.router_aux_loss_coef=0, or choose another model' },
    );
  },
};
