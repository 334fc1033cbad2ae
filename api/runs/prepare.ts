/**
 * From a recipe to everything a run needs, in the store and by digest: model, tokenised rows, the user's scorer. After
 * this the run sees no machine path and no changed file.
 */
import { basename } from 'node:path';
import { readFile } from 'node:fs/promises';
import { InvalidInputError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { RunInputs } from '../../core/records/schema.ts';
import { storeDataset } from '../../infra/store/datasets.ts';
import { sha256 } from '../../infra/store/digest.ts';
import { storeModelFolder } from '../../infra/store/model-facts.ts';
import { expectedTensors, readDecoderConfig } from '../../models/config.ts';
import { encodeDatasetRows, encodeDatasetTokens, rowsFile, tokensFile } from '../../models/dataset-fact.ts';
import type { DatasetFact } from '../../models/dataset-fact.ts';
import { openSafetensors } from '../../models/safetensors.ts';
import { checkTensors, readConfigJson } from '../../models/weights.ts';
import { openTokenizer } from '../../models/tokenizer.ts';
import { locateModel } from './locate-model.ts';
import type { PreparePorts } from './prepare-ports.ts';
import { loadRows } from './rows.ts';

/** Revision of the built-in scorers: a change of any verdict raises it. */
const builtinScorers = '1';

export interface Prepared {
  readonly inputs: RunInputs;
  /** The user's scorer module, to be written as a blob of the run. */
  readonly module?: Uint8Array;
  readonly notes: readonly string[];
}

/** Rows first, then the model's shapes, then copies: what is wrong is told at the earliest moment. Throws InvalidInputError. */
export async function prepareRun(recipe: Recipe, ports: PreparePorts): Promise<Prepared> {
  const model = await locateModel(recipe, ports);
  const tokenizer = await openTokenizer(model.tokenizerFolder);
  const train = await loadRows(recipe, 'train', tokenizer, ports.now);
  const validation =
    recipe.data.val_files === null || recipe.kind === 'sft'
      ? undefined
      : await loadRows(recipe, 'validation', tokenizer, ports.now);
  await checkModel(model.folder);
  ports.say('storing the model and the rows');
  const scorer = await scorerOf(recipe);
  return {
    inputs: {
      model: await storeModelFolder(ports.store, model.folder, model.tokenizerFolder),
      train: await storeRows(ports.store, train.dataset),
      trainRows: train.dataset.rows.length,
      ...(validation && {
        validation: await storeRows(ports.store, validation.dataset),
        validationRows: validation.dataset.rows.length,
      }),
      ...(scorer && { scorer: scorer.input }),
    },
    ...(scorer?.module && { module: scorer.module }),
    notes: [...train.notes, ...(validation?.notes ?? [])],
  };
}

async function checkModel(folder: string): Promise<void> {
  const config = readDecoderConfig(await readConfigJson(folder), `${folder}/config.json`);
  const source = await openSafetensors(folder);
  try {
    checkTensors(source, expectedTensors(config), config.tied);
  } finally {
    await source.close();
  }
}

export function storeRows(store: Store, dataset: DatasetFact): Promise<Digest> {
  return storeDataset(store, { [tokensFile]: encodeDatasetTokens(dataset), [rowsFile]: encodeDatasetRows(dataset) });
}

export async function scorerOf(
  recipe: Recipe,
): Promise<{ readonly input: NonNullable<RunInputs['scorer']>; readonly module?: Uint8Array } | undefined> {
  if (recipe.kind === 'sft') return undefined;
  const { scorer, custom_reward_function: custom } = recipe.reward;
  if (custom.path === null) {
    return { input: { type: 'builtin', ...(scorer === null ? {} : { name: scorer }), revision: builtinScorers } };
  }
  const module = await readFile(custom.path).catch((cause: unknown) => {
    throw new InvalidInputError(`reward.custom_reward_function.path: cannot read ${custom.path}`, { cause });
  });
  return {
    input: {
      type: 'module',
      module: sha256(module),
      fileName: basename(custom.path),
      exportName: custom.name,
      deterministic: custom.deterministic,
    },
    module,
  };
}
