/**
 * The engines of a run: that the workers which are there have them, and, for a run that promises its bits, that these
 * are proved. Where no stack is up, this machine's engines answer: those that a stack started here would have.
 */
import { InvalidInputError } from '../../core/errors.ts';
import { divisionOf } from '../../core/division.ts';
import { namedEngines } from '../../core/engines.ts';
import { samplerEngine } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import type { ComputeType } from '../../core/parameters.ts';
import type { EngineFacts } from '../../core/wire/engine-facts.ts';
import { refusedHint, refusedText } from '../../core/wire/engine-proof.ts';
import type { Role } from '../../core/roles.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { chosenEnvironment } from '../../infra/engines/environment.ts';
import { httpName, namesOfEngines } from '../../core/sampling-server.ts';
import { engineReport } from '../../infra/engine-proof.ts';
import { plansOf } from '../engine-plans.ts';
import { openLiveSource } from '../live-source.ts';
import type { Check } from './checks.ts';

export const engineCheck: Check = {
  name: 'engine',
  look: async ({ recipe, ports }) => {
    const present = await enginesOfWorkers(ports.home);
    if (present !== undefined) requireEngines(recipe, present);
    else requireInstalled(recipe, ports.home);
    if (recipe.deterministic === false) return undefined;
    const trainers = present?.trainer ?? [await engineReport()];
    return judged(
      recipe,
      trainers.filter(({ name }) => name === recipe.trainer.engine),
    );
  },
};

/**
 * Checks the engines of a run that goes on with another one. Throws InvalidInputError where the workers that are there
 * lack one, or one does not know the model in `folder`, which is an adapter's base where there is an adapter.
 */
export async function checkEngines(recipe: Recipe, folder: string, home: string): Promise<void> {
  const present = await enginesOfWorkers(home);
  if (present !== undefined) requireEngines(recipe, present);
  else requireInstalled(recipe, home);
  const model: ModelRef = { folder, head: recipe.kind === 'rm' ? 'scores' : 'tokens' };
  for (const name of enginesOf(recipe)) await plansOf(name).readModel(model, divisionOf(recipe.trainer));
}

const enginesOf = (recipe: Recipe): ReadonlySet<string> =>
  new Set([recipe.trainer.engine, ...(samplesResponses(recipe.kind) ? [samplerEngine(recipe)] : [])]);

/**
 * Throws InvalidInputError where an engine needs an environment of its own that this machine does not have, and where
 * its samples do not repeat as the recipe promises.
 */
export function requireInstalled(recipe: Recipe, home: string): void {
  const { name } = recipe.rollout;
  if (recipe.deterministic === true && samplesResponses(recipe.kind) && namedEngines[name]?.repeatsSamples === false)
    throw drawsOtherBits(name);
  for (const name of enginesOf(recipe)) {
    const environment = namedEngines[name]?.environment;
    if (environment === undefined || chosenEnvironment(home, name) !== undefined) continue;
    const where = name === recipe.trainer.engine ? 'trainer.engine' : 'rollout.name';
    throw new InvalidInputError(`${where}: the engine ${name} is not installed on this machine, and no worker is up`, {
      where,
      hint: `petrel engine install ${environment}, or join a machine that has it first: docs/learn/second-machine.md`,
    });
  }
}

/** The engines of the workers that train and that sample. */
export type EnginesByRole = Readonly<Record<Exclude<Role, 'reward'>, readonly EngineFacts[]>>;

/** The engines of a running stack's workers; undefined where no worker says that it has one. */
async function enginesOfWorkers(home: string): Promise<EnginesByRole | undefined> {
  const live = await openLiveSource(home);
  try {
    if (live.stack === undefined) return undefined;
    const workers = (await live.workers()).filter(({ engines }) => engines.length > 0);
    const having = (role: Role) =>
      workers.filter(({ roles }) => roles.includes(role)).flatMap(({ engines }) => engines);
    return workers.length === 0 ? undefined : { trainer: having('trainer'), rollout: having('rollout') };
  } finally {
    await live.close();
  }
}

/** Throws InvalidInputError where the workers that are there cannot train or sample for the recipe. */
export function requireEngines(recipe: Recipe, { trainer, rollout }: EnginesByRole): void {
  requireEngine('trainer.engine', recipe.trainer.engine, trainer);
  if (!samplesResponses(recipe.kind)) return;
  requireEngine('rollout.name', samplerEngine(recipe), rollout);
  requireRepeatedSamples(recipe, rollout);
}

/** Workers that come later may have it, so none at all is no refusal. */
function requireEngine(where: string, wanted: string, engines: readonly EngineFacts[]): void {
  if (engines.length === 0 || engines.some(({ name }) => name === wanted)) return;
  if (wanted === httpName)
    throw new InvalidInputError('rollout.url: no worker can use a sampling server: they are of an older petrel', {
      where: 'rollout.url',
      hint: 'petrel down && petrel up',
    });
  const names = namesOfEngines(engines);
  const environment = namedEngines[wanted]?.environment;
  throw new InvalidInputError(`${where}: no worker has the engine ${wanted}; they have ${names.join(', ')}`, {
    where,
    hint: environment
      ? `petrel engine install ${environment}, then petrel down and petrel up`
      : `start a worker that has it, or set ${where}=${names[0]}`,
  });
}

/** A run that promises its weights to the bit needs samples that come out the same when they are sampled again. */
function requireRepeatedSamples({ deterministic, rollout }: Recipe, engines: readonly EngineFacts[]): void {
  if (deterministic !== true) return;
  const samplers = engines.filter(({ name }) => name === rollout.name);
  if (samplers.length === 0 || samplers.some(({ randomness }) => randomness === 'counter')) return;
  throw drawsOtherBits(rollout.name);
}

const drawsOtherBits = (name: string): InvalidInputError =>
  new InvalidInputError(
    `deterministic: true: the sampler ${name} draws other random bits when a sample is sampled again`,
    { where: 'rollout.name', hint: 'deterministic: replay, or rollout.name=native' },
  );

/** One engine that has the bits is enough: jobs of such runs go to it. */
function judged(recipe: Recipe, engines: readonly EngineFacts[]) {
  const proofs = engines.flatMap(({ auto, proofs = [] }) =>
    proofs.filter(({ compute }) => compute === promisedCompute(recipe, auto)),
  );
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

/** The compute type of a run that promises its bits. */
const promisedCompute = ({ model }: Recipe, auto: EngineFacts['auto']): ComputeType =>
  model.compute_dtype === 'auto' ? auto.deterministic : model.compute_dtype;
