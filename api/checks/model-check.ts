/** The model folder: the run's engine reads its config and compares every tensor's shape, without loading one. */
import { samplesResponses } from '../../core/run-kinds.ts';
import { showBytes, showCount } from '../../core/quantities.ts';
import { batchArithmetic } from '../../core/recipe/index.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
import type { Check, Finding } from './checks.ts';

export const modelCheck: Check = {
  name: 'model',
  look: async (inputs) => {
    const { missingBytes = 0 } = await inputs.model();
    const { family, layers, parameters } = await inputs.modelFacts();
    await inputs.samplerFacts();
    const size = parameters === undefined ? '' : `, ${showCount(parameters)} parameters`;
    const detail = `${inputs.recipe.model.path}: ${family}, ${layers} layers${size}`;
    if (missingBytes > 0)
      return { status: 'later', detail: `${detail}; its weights (${showBytes(missingBytes)}) are fetched by the run` };
    await inputs.plans.checkWeights?.(await inputs.modelRef());
    return { detail };
  },
};

/** Warns of lengths beyond the positions that a model was trained with: its text is likely to be nonsense there. */
export const lengthsCheck: Check = {
  name: 'lengths',
  look: async (inputs) => {
    const { maxPositions } = await inputs.modelFacts();
    const { longestSequence } = batchArithmetic(inputs.recipe);
    if (longestSequence <= maxPositions) return undefined;
    const keys = samplesResponses(inputs.recipe.kind)
      ? 'data.max_prompt_length and data.max_response_length'
      : 'data.max_length';
    return {
      status: 'warning',
      detail: `a sequence may have ${longestSequence} tokens, and the model was made for ${maxPositions}: lower ${keys}`,
    };
  },
};

export const tokenizerCheck: Check = {
  name: 'tokenizer',
  look: async (inputs) => {
    const tokenizer = await inputs.tokenizer();
    const { vocab } = await inputs.modelFacts();
    const { path } = inputs.recipe.model;
    const beyond = tokenizer.stopTokens.filter((id) => id >= vocab);
    if (beyond.length > 0 && beyond.length === tokenizer.stopTokens.length)
      throw new InvalidInputError(
        `${path}: no response could end: the model has embeddings for the tokens 0 to ${vocab - 1}, and the end tokens are ${beyond.join(', ')}`,
        { where: path, hint: 'resize the model’s embedding to the tokenizer, or name an end token that the model has' },
      );
    if (tokenizer.vocabSize <= vocab && beyond.length > 0)
      return {
        status: 'warning',
        detail: `${path}: the end tokens ${beyond.join(', ')} never come: the model has the tokens 0 to ${vocab - 1}; correct eos_token_id of config.json or generation_config.json`,
      };
    if (tokenizer.vocabSize <= vocab) return endTokens(path, tokenizer);
    return { status: 'warning', detail: `${path}: ${await withoutEmbedding(tokenizer, vocab)}` };
  },
};

/**
 * config.json, generation_config.json and the tokenizer may name different end tokens: every one of them ends a
 * response.
 */
async function endTokens(path: string, tokenizer: BatchTokenizer): Promise<Finding | undefined> {
  const { stopTokens } = tokenizer;
  if (stopTokens.length < 2) return undefined;
  const texts = await tokenizer.decodeBatch(stopTokens.map((id) => Int32Array.of(id)));
  const named = stopTokens.map((id, i) => `${id} ${JSON.stringify(texts[i])}`).join(', ');
  return { detail: `${path}: a response ends with any of the tokens ${named}` };
}

/** Says which tokens the model cannot read; a row with one of them is refused by the check of the rows. */
async function withoutEmbedding(tokenizer: BatchTokenizer, vocab: number): Promise<string> {
  const named = Object.entries(tokenizer.specialTokens);
  const ids = await tokenizer.encodeBatch(named.map(([, text]) => text));
  const special = named.filter((_, i) => ids[i]?.length === 1 && (ids[i]?.[0] ?? 0) >= vocab);
  const first = special.map(([name, text]) => `${name} ${JSON.stringify(text)}`).join(', ');
  const tokens = `the tokenizer has ${tokenizer.vocabSize} tokens and the model embeddings for ${vocab}`;
  return `${tokens}${first === '' ? '' : `; without one: ${first}`}; every row is checked for them`;
}
