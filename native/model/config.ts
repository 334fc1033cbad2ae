/** Converts a Hugging Face `config.json`, with the keys of transformers 4 or 5, to a decoder as data. */
import type { HeadKind } from '../../core/ports/policy.ts';
import { headClasses, labelsOf, requireOneScore, scoreConfig } from '../../models/config.ts';
import type { DecoderSpec, HeadSpec } from './spec.ts';
import type { DecoderBody, Family } from './families/family.ts';
import { families } from './families/index.ts';
import { refusal } from './families/parts.ts';
import { Tensors } from './families/tensors.ts';
import { Fields, show } from '../../models/fields.ts';

const supportedDtypes = ['float32', 'bfloat16', 'float16'] as const;

/**
 * The decoder of a config.json. `wanted`: heads that the caller can use, by default that of a language model. Throws
 * InvalidInputError with the field, the found value and the supported ones. `where`: the file's path for the message.
 */
export function readDecoderSpec(
  configJson: unknown,
  where = 'config.json',
  wanted: readonly HeadKind[] = ['tokens'],
): DecoderSpec {
  const config = new Fields(configJson, where);
  const { family, head } = readArchitecture(config, wanted);
  refuseUnsupported(config);
  const tensors = new Tensors();
  const body = family.read(config, tensors);
  const { hidden, vocab, maxPositions, embedding, layers, finalNorm } = body;
  const headSpec = readHead(config, tensors, head, body);
  return {
    family: family.name,
    hidden,
    vocab,
    maxPositions,
    tensors: tensors.list(),
    embedding,
    layers,
    finalNorm,
    head: headSpec,
  };
}

/**
 * The decoder with one score for a sequence: a sequence classifier's own head, or a new one. Throws InvalidInputError
 * for a classifier with another number of labels.
 */
export function readScoreSpec(configJson: unknown, where = 'config.json'): DecoderSpec {
  const config = configJson as Record<string, unknown>;
  const spec = readDecoderSpec(scoreConfig(config), where, ['scores']);
  requireOneScore(config, where);
  return spec;
}

/** The same decoder with a value head in place of the language model's. */
export function readValueSpec(configJson: unknown, where = 'config.json'): DecoderSpec {
  const { architectures, id2label: _, ...config } = configJson as Record<string, unknown>;
  const [name] = Array.isArray(architectures) ? (architectures as unknown[]) : [];
  const values = String(name).replace(/ForCausalLM$/, 'ForTokenClassification');
  return readDecoderSpec({ ...config, architectures: [values], num_labels: 1 }, where, ['values']);
}

function readHead(config: Fields, tensors: Tensors, kind: HeadKind, body: DecoderBody): HeadSpec {
  const { hidden, vocab, embedding, tiedByDefault, logitSoftcap: softcap } = body;
  const tied = config.flag('tie_word_embeddings', tiedByDefault);
  if (kind === 'tokens') {
    const part = tied ? { weight: embedding.table, rows: vocab } : tensors.linear('lm_head', vocab, hidden);
    return { kind, projection: [part], softcap };
  }
  const labels = labelsOf(config);
  if (kind === 'scores') return { kind, labels, projection: [tensors.linear('score', labels, hidden)] };
  if (labels !== 1) throw refusal(config, `a value head has one label, found ${labels} (num_labels or id2label)`);
  return { kind, projection: [tensors.linear('score', 1, hidden, true)] };
}

/** Names of classes in transformers, such as `LlamaForCausalLM`, whose models have one of these heads. */
export function architectureNames(wanted: readonly HeadKind[]): string[] {
  return architectures(wanted).map(({ name }) => name);
}

function architectures(wanted: readonly HeadKind[]): { name: string; family: Family; head: HeadKind }[] {
  return families.flatMap((family) =>
    Object.entries(headClasses)
      .filter(([, head]) => wanted.includes(head))
      .map(([ending, head]) => ({ name: `${family.classes}${ending}`, family, head })),
  );
}

function readArchitecture(config: Fields, wanted: readonly HeadKind[]): { family: Family; head: HeadKind } {
  const known = architectures(wanted);
  const supported = `supported: ${known.map(({ name }) => name).join(', ')}`;
  const classes = config.get('architectures');
  const modelType = config.get('model_type');
  if (classes === undefined || classes === null) {
    const byType = known.find(({ family }) => family.name === modelType);
    if (byType !== undefined) return byType;
    throw refusal(config, `model_type ${show(modelType)} is not supported; ${supported}`);
  }
  const name: unknown = Array.isArray(classes) ? classes[0] : undefined;
  if (Array.isArray(classes) && classes.length > 1)
    throw refusal(config, `architectures must name one class, found ${show(classes)}: remove the others`);
  const found = known.find((one) => one.name === name);
  if (found === undefined)
    throw refusal(config, `architecture ${show(name ?? classes)} is not supported; ${supported}`);
  const expected = found.family.name;
  if (modelType !== undefined && modelType !== null && modelType !== expected) {
    throw refusal(
      config,
      `model_type ${show(modelType)} does not go with architecture ${found.name} (expected "${expected}")`,
    );
  }
  return found;
}

function refuseUnsupported(config: Fields): void {
  const dtype = config.get('dtype') ?? config.get('torch_dtype') ?? 'float32';
  const plain = typeof dtype === 'string' ? dtype.replace(/^torch\./, '') : dtype;
  if (plain !== 'auto' && !supportedDtypes.some((known) => known === plain)) {
    throw refusal(config, `dtype ${show(dtype)} is not supported; supported: ${supportedDtypes.join(', ')}`);
  }
  const quantization = config.get('quantization_config');
  if (quantization !== undefined && quantization !== null) {
    throw refusal(
      config,
      'quantized weights (quantization_config) are not supported; use the float32, bfloat16 or float16 checkpoint',
    );
  }
}
