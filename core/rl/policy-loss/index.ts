/** Registry of policy losses, key `actor.policy_loss.loss_mode`. A loss is one file and one line here. */
import { InvalidInputError } from '../../errors.ts';
import { POLICY_LOSS_NAMES, type PolicyLossName } from '../names.ts';
import { bypassMode } from './bypass-mode.ts';
import { cispo } from './cispo.ts';
import { clipCov } from './clip-cov.ts';
import { dppoKl, dppoTv } from './dppo.ts';
import { dro } from './dro.ts';
import { flowrl } from './flowrl.ts';
import { geoMean } from './geo-mean.ts';
import { gpg } from './gpg.ts';
import { gspo } from './gspo.ts';
import { gvpo } from './gvpo.ts';
import { klCov } from './kl-cov.ts';
import { onlineDpo } from './online-dpo.ts';
import { sapo } from './sapo.ts';
import { sppo } from './sppo.ts';
import type { PolicyLoss } from './types.ts';
import { vanilla } from './vanilla.ts';
import { withScratch } from '../scratch.ts';

export type { PolicyLoss, PolicyLossConfig, PolicyLossInput, PolicyLossResult } from './types.ts';

const LOSSES: Readonly<Record<PolicyLossName, PolicyLoss>> = inScratch({
  vanilla,
  gspo,
  sapo,
  cispo,
  gpg,
  geo_mean: geoMean,
  clip_cov: clipCov,
  kl_cov: klCov,
  dppo_tv: dppoTv,
  dppo_kl: dppoKl,
  dro,
  bypass_mode: bypassMode,
  sppo,
  gvpo,
  flowrl,
  online_dpo: onlineDpo,
});

/** @throws InvalidInputError with the known losses. */
export function policyLoss(name: string): PolicyLoss {
  const found = Object.hasOwn(LOSSES, name) ? LOSSES[name as PolicyLossName] : undefined;
  if (found === undefined) {
    throw new InvalidInputError(`unknown policy loss "${name}"`, { hint: `one of ${POLICY_LOSS_NAMES.join(', ')}` });
  }
  return found;
}

function inScratch<Name extends string>(losses: Readonly<Record<Name, PolicyLoss>>): Record<Name, PolicyLoss> {
  const entries = Object.entries<PolicyLoss>(losses).map(([name, { compute, ...loss }]) => [
    name,
    { ...loss, compute: (...words: Parameters<PolicyLoss['compute']>) => withScratch(() => compute(...words)) },
  ]);
  return Object.fromEntries(entries) as Record<Name, PolicyLoss>;
}
