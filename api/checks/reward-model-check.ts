/** The reward model's folder: one score, the tensors of its config, and the tokenizer of the policy. */
import { frozenDivision } from '../../core/division.ts';
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { showCount } from '../../core/quantities.ts';
import { OnnxClassifier, isOnnxFolder, onnxFile } from '../../infra/onnx/classifier.ts';
import { headOfConfig, padTokenOf } from '../../models/config.ts';
import { Fields } from '../../models/fields.ts';
import { readConfigJson } from '../../models/folder.ts';
import type { Check, Finding } from './checks.ts';
import type { RecipeInputs } from '../inputs/recipe-inputs.ts';

export const rewardModelCheck: Check = {
  name: 'reward model',
  look: async (inputs) => {
    const located = await inputs.rewardModel();
    if (located === undefined) return undefined;
    const { folder, missingBytes = 0 } = located;
    const config = await readConfigJson(folder);
    const names = await readdir(folder);
    if (isOnnxFolder(names)) return onnxFinding(inputs, folder, config);
    const where = join(folder, 'config.json');
    if (headOfConfig(config) !== 'scores')
      throw new InvalidInputError(
        `${where}: a reward model is a sequence classifier, found the architecture ${JSON.stringify(config['architectures'] ?? null)}`,
        { where, hint: 'train one with kind: rm and write it with petrel ckpt export' },
      );
    const model = { folder, head: 'scores' } as const;
    const { family, parameters } = await inputs.plans.readModel(model, frozenDivision(inputs.recipe.trainer));
    await refuseOtherTokenizer(folder, (await inputs.model()).tokenizerFolder);
    const size = parameters === undefined ? '' : `, ${showCount(parameters)} parameters`;
    const detail = `${inputs.recipe.reward.reward_model.path}: ${family}${size}`;
    if (missingBytes > 0) return { status: 'later', detail: `${detail}; its weights are fetched by the run` };
    await inputs.plans.checkWeights?.(model);
    return { detail };
  },
};

/** A graph in place of weights for petrel's engine: it is loaded and tried. */
async function onnxFinding(
  inputs: RecipeInputs,
  folder: string,
  config: Readonly<Record<string, unknown>>,
): Promise<Finding> {
  const { recipe } = inputs;
  const where = 'reward.reward_model.path';
  if (recipe.deterministic === true)
    throw new InvalidInputError(
      `${folder}: ONNX Runtime's scores depend on the processor, and deterministic: true promises equal weights on every one`,
      { where, hint: 'set deterministic: replay, or use a folder with safetensors, which petrel’s own engine reads' },
    );
  await refuseOtherTokenizer(folder, (await inputs.model()).tokenizerFolder);
  const fields = new Fields(config, join(folder, 'config.json'));
  const longest = fields.size('max_position_embeddings', 2 ** 31 - 1);
  const { max_prompt_length: prompt, max_response_length: response } = recipe.data;
  if (prompt + response > longest)
    throw new InvalidInputError(
      `${folder}: the model reads ${longest} tokens; prompt and response have up to ${prompt + response}`,
      { where, hint: 'lower data.max_prompt_length or data.max_response_length' },
    );
  const classifier = await OnnxClassifier.open(folder, { threads: 1, padToken: padTokenOf(config) });
  try {
    await classifier.tryPadding(fields.size('vocab_size'));
  } finally {
    await classifier.close();
  }
  return { detail: `${recipe.reward.reward_model.path}: ${onnxFile}, one score`, deterministic: false };
}

/**
 * The model reads the policy's tokens as they are. (verl decodes the responses and renders them for the other
 * tokenizer.)
 */
async function refuseOtherTokenizer(folder: string, ofPolicy: string): Promise<void> {
  const [own, policy] = await Promise.all([digestOf(folder), digestOf(ofPolicy)]);
  if (own === policy && own !== undefined) return;
  throw new InvalidInputError(
    `${folder}: a reward model reads the tokens of the policy, and its tokenizer.json ${own === undefined ? 'is missing' : `differs from that of ${ofPolicy}`}`,
    {
      where: join(folder, 'tokenizer.json'),
      hint: 'use a reward model that was trained from a model with this tokenizer',
    },
  );
}

async function digestOf(folder: string): Promise<string | undefined> {
  const bytes = await readFile(join(folder, 'tokenizer.json')).catch(() => undefined);
  return bytes && createHash('sha256').update(bytes).digest('hex');
}
