/**
 * The engine's bits, for a run that promises them: those of the workers that are there, or of this machine's engine.
 */
import { InvalidInputError } from '../../core/errors.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { ComputeType } from '../../core/ports/policy.ts';
import { refusedHint, refusedText } from '../../core/wire/engine-proof.ts';
import type { EngineProof } from '../../core/wire/engine-proof.ts';
import { engineReport } from '../../infra/engine-proof.ts';
import { openLive } from '../runs/live-source.ts';
import type { Check } from './checks.ts';

export const engineCheck: Check = {
  name: 'engine',
  look: async ({ recipe, ports }) => {
    if (recipe.deterministic === false) return undefined;
    const compute = promisedCompute(recipe);
    const proofs = (await proofsOfTrainers(ports.home)) ?? [(await engineReport()).proofs];
    return judged(compute, proofs);
  },
};

/** The compute type of a run that promises its bits: `auto` is fp32, which every processor has. */
const promisedCompute = ({ model }: Recipe): ComputeType =>
  model.compute_dtype === 'auto' ? 'fp32' : model.compute_dtype;

/** One engine that has the bits is enough: jobs of such runs go to it. */
function judged(compute: ComputeType, engines: readonly (readonly EngineProof[])[]) {
  const proofs = engines.flat().filter((proof) => proof.compute === compute);
  const refused = proofs.find(({ state }) => state === 'refused');
  if (refused !== undefined && proofs.every(({ state }) => state === 'refused'))
    throw new InvalidInputError(refusedText(refused), { where: 'deterministic', hint: refusedHint });
  const proved = proofs.find(({ state }) => state === 'proved');
  if (proved !== undefined) return { detail: `its bits are those of ${proved.profile}` };
  const [unproved] = proofs;
  if (unproved === undefined) return undefined;
  const detail = `no bits are recorded for ${unproved.profile}: runs on such processors repeat, and nothing vouches for them`;
  return { status: 'warning' as const, detail };
}

/** What the trainers of a running stack proved; undefined where none is there or says so. */
async function proofsOfTrainers(home: string): Promise<(readonly EngineProof[])[] | undefined> {
  const live = await openLive(home);
  try {
    if (live.stack === undefined) return undefined;
    const trainers = (await live.workers()).filter(({ roles }) => roles.includes('trainer'));
    const proofs = trainers.flatMap((trainer) => (trainer.proofs === undefined ? [] : [trainer.proofs]));
    return proofs.length === 0 ? undefined : proofs;
  } finally {
    await live.close();
  }
}
