/** Checks of the auxiliary loss of mixtures of experts: which engines train them. */
import { enginesThat } from '../engines.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

const trainers = enginesThat(({ trains, mixtures }) => trains && mixtures);

export function mixtureIssues({ actor, trainer }: Recipe): RecipeIssue[] {
  if (actor.router_aux_loss_coef === 0 || trainers.includes(trainer.engine)) return [];
  return [
    {
      path: 'actor.router_aux_loss_coef',
      message: `the engine ${trainer.engine} has no mixtures of experts`,
      expected: '0',
      received: String(actor.router_aux_loss_coef),
      hint: `set trainer.engine=${trainers[0]}, or actor.router_aux_loss_coef=0`,
    },
  ];
}
