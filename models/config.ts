/** What a Hugging Face `config.json` says of a model, whatever engine runs it. */
import type { ModelFacts } from '../core/ports/engine-plans.ts';
import type { HeadKind } from '../core/ports/policy.ts';
import { InvalidInputError } from '../core/errors.ts';
import { Fields, isObject } from './fields.ts';

/** End of a class's name in transformers → the head that it has. */
export const headClasses: Readonly<Record<string, HeadKind>> = {
  ForCausalLM: 'tokens',
  ForSequenceClassification: 'scores',
  ForTokenClassification: 'values',
};

/** The number of tokens that a model knows: every decoder's config.json states it, whatever engine runs the model. */
export function vocabOf(configJson: unknown, where = 'config.json'): number {
  return new Fields(configJson, where).size('vocab_size');
}

/** The head that the folder of a config.json holds; undefined for a class that is not known. */
export function headOfConfig(configJson: unknown): HeadKind | undefined {
  const { architectures } = configJson as { readonly architectures?: unknown };
  const name = String(Array.isArray(architectures) ? architectures[0] : 'ForCausalLM');
  return Object.entries(headClasses).find(([ending]) => name.endsWith(ending))?.[1];
}

/** The token that transformers leaves out when it looks for the last one of a sequence. */
export function padTokenOf(configJson: unknown): number | undefined {
  const { pad_token_id: id } = configJson as { readonly pad_token_id?: unknown };
  return typeof id === 'number' ? id : undefined;
}

/** The config.json of the model with one score for a sequence in place of the language model's head, or as it is. */
export function scoreConfig(configJson: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (headOfConfig(configJson) === 'scores') return configJson;
  const { architectures, ...config } = configJson;
  const [name] = Array.isArray(architectures) ? (architectures as unknown[]) : [];
  return {
    ...config,
    architectures: [String(name).replace(/ForCausalLM$/, 'ForSequenceClassification')],
    // transformers writes num_labels as this list.
    id2label: { '0': 'LABEL_0' },
    label2id: { LABEL_0: 0 },
  };
}

/** `num_labels`, or the number of names in `id2label`; transformers' default is 2. */
export function labelsOf(config: Fields): number {
  const names = config.get('id2label');
  return config.size('num_labels', isObject(names) ? Object.keys(names).length : 2, 1 << 20);
}

/**
 * Throws InvalidInputError for a sequence classifier with another number of labels than one. In a reward model that
 * begins as a language model the head is new, and has one.
 */
export function requireOneScore(configJson: Readonly<Record<string, unknown>>, where = 'config.json'): void {
  const labels = labelsOf(new Fields(scoreConfig(configJson), where));
  if (labels === 1) return;
  throw new InvalidInputError(`${where}: a reward model gives one score, found ${labels} labels`, {
    where,
    hint: 'use a sequence classifier with num_labels 1',
  });
}

/** What every config.json of a language model says. Throws InvalidInputError. */
export function generalFacts(configJson: unknown, where = 'config.json'): ModelFacts {
  const config = new Fields(configJson, where);
  return {
    family: String(config.get('model_type') ?? 'model'),
    layers: config.size('num_hidden_layers'),
    vocab: vocabOf(configJson, where),
    maxPositions: config.size('max_position_embeddings'),
  };
}
