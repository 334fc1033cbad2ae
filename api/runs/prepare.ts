/**
 * Stores everything that a run needs, by digest: model, rows and code of the user's own. After this the run depends on
 * no path of this machine and no file that may change.
 */
import { join } from 'node:path';
import { runKinds, samplesResponses } from '../../core/run-kinds.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { RunInputs } from '../../core/records/schema.ts';
import { sha256 } from '../../log/objects/digest.ts';
import { storeModelFolder } from '../../log/inputs/model-facts.ts';
import { WaitingBlocks } from '../../log/inputs/waiting-blocks.ts';
import { encodeScorerFiles } from '../../rewards/scorer-files.ts';
import { gatherScorer } from '../scorer-files/gather.ts';
import { assertChecks } from '../checks/checks.ts';
import type { Check } from '../checks/checks.ts';
import { storeTrainedModel } from '../inputs/adapter.ts';
import { RecipeInputs } from '../inputs/recipe-inputs.ts';
import { startChecks } from '../checks/start-checks.ts';
import type { PreparePorts } from '../inputs/prepare-ports.ts';
import { inputsOf } from '../inputs/own-modules.ts';
import { blobsOf, startedSampler } from './sampler-start.ts';
import { linesOf } from '../inputs/rows.ts';
import type { RowsPart } from '../inputs/rows.ts';

/** Revision of the built-in scorers. Raise it when any of their results changes. */
const builtinScorers = '1';

export interface Prepared {
  readonly inputs: RunInputs;
  /** Code of the user's own, to be stored as blobs of the run. */
  readonly modules: readonly Uint8Array[];
  readonly notes: readonly string[];
}

/**
 * Makes the checks, by default those of `petrel plan`, then stores everything. Throws the error of the first check that
 * fails.
 */
export async function prepareRun(
  recipe: Recipe,
  ports: PreparePorts,
  checks: readonly Check[] = startChecks,
): Promise<Prepared> {
  const scratch = join(ports.home, 'cache');
  const blocks = { train: new WaitingBlocks(scratch), validation: new WaitingBlocks(scratch) };
  const found = new RecipeInputs(recipe, ports, {}, (part) => (bytes, rows) => blocks[part].add(bytes, rows));
  try {
    await assertChecks(checks, found);
    return await storeInputs(found, ports, blocks);
  } finally {
    await Promise.all([blocks.train.remove(), blocks.validation.remove()]);
  }
}

async function storeInputs(
  found: RecipeInputs,
  ports: PreparePorts,
  blocks: Readonly<Record<RowsPart, WaitingBlocks>>,
): Promise<Prepared> {
  const { recipe } = found;
  const model = await found.model();
  const rewardModel = await found.rewardModel();
  const train = await found.rows('train');
  const validation =
    recipe.data.val_files === null || runKinds[recipe.kind].validation === 'none'
      ? undefined
      : await found.rows('validation');
  ports.say('storing the model and the rows');
  const scorer = await scorerOf(recipe);
  const own = await found.ownModules();
  const teacher = await found.teacher();
  const trainDigest = await blocks.train.store(ports.store, train.rules);
  const sampler = await startedSampler(own, recipe, { train: trainDigest, store: ports.store });
  return {
    inputs: {
      ...(await storeTrainedModel(recipe, ports, model)),
      ...(teacher && { teacher: await storeModelFolder(ports.store, teacher.folder) }),
      ...(rewardModel && { rewardModel: await storeModelFolder(ports.store, rewardModel.folder) }),
      train: trainDigest,
      trainRows: train.count,
      ...(validation && {
        validation: await blocks.validation.store(ports.store, validation.rules),
        validationRows: validation.count,
      }),
      ...(scorer && { scorer: scorer.input }),
      ...inputsOf(own),
      ...(sampler && { sampler: sampler.input }),
    },
    modules: [...(scorer?.modules ?? []), ...blobsOf(own, sampler)],
    notes: [...linesOf(train), ...(validation ? linesOf(validation) : [])],
  };
}

export async function scorerOf(
  recipe: Recipe,
): Promise<{ readonly input: NonNullable<RunInputs['scorer']>; readonly modules: readonly Uint8Array[] } | undefined> {
  if (!samplesResponses(recipe.kind)) return undefined;
  const { scorer, custom_reward_function: custom } = recipe.reward;
  if (custom.path === null) {
    const input = { type: 'builtin', ...(scorer === null ? {} : { name: scorer }), revision: builtinScorers } as const;
    return { input, modules: [] };
  }
  const whole = await gatherScorer(custom.path, custom.requirements);
  const { module, fileName } = whole;
  const others = whole.files.size > 0 || whole.requirements !== undefined ? encodeScorerFiles(whole) : undefined;
  return {
    input: {
      type: 'module',
      module: sha256(module),
      fileName,
      exportName: custom.name,
      deterministic: custom.deterministic,
      ...(others && { files: sha256(others) }),
    },
    modules: [module, ...(others ? [others] : [])],
  };
}
