/** Registry of policy losses, key `actor.policy_loss.loss_mode`. A loss is one file and one line here. */
import { InvalidInputError } from '../../errors.ts';
import { POLICY_LOSS_NAMES, type PolicyLossName } from '../names.ts';
import { cispo } from './cispo.ts';
import { geoMean } from './geo-mean.ts';
import { gspo } from './gspo.ts';
import { sapo } from './sapo.ts';
import type { PolicyLoss } from './types.ts';
import { vanilla } from './vanilla.ts';

export type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

const LOSSES: Readonly<Record<PolicyLossName, PolicyLoss>> = { vanilla, gspo, sapo, cispo, geo_mean: geoMean };

/** @throws InvalidInputError with the known losses. */
export function policyLoss(name: string): PolicyLoss {
  const found = Object.hasOwn(LOSSES, name) ? LOSSES[name as PolicyLossName] : undefined;
  if (found === undefined) {
    throw new InvalidInputError(`unknown policy loss "${name}"`, { hint: `one of ${POLICY_LOSS_NAMES.join(', ')}` });
  }
  return found;
}
