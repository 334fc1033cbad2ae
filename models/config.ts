/**
 * Converts a Hugging Face `config.json`, with the keys of transformers 4 or 5, to the engine's decoder config and the
 * model's expected tensors. A missing field has the family's default in transformers.
 */
import { InvalidInputError } from '../core/errors.ts';
import { modelLimits } from '../core/model-limits.ts';
import type { DecoderConfig } from '../core/ports.ts';
import { Fields, show } from './fields.ts';
import { ropeInverseFrequencies } from './rope.ts';

type Family = DecoderConfig['family'];

export const supportedArchitectures: Readonly<Record<string, Family>> = {
  LlamaForCausalLM: 'llama',
  Qwen2ForCausalLM: 'qwen2',
  Qwen3ForCausalLM: 'qwen3',
};
export const supportedDtypes = ['float32', 'bfloat16', 'float16'] as const;

/**
 * Throws InvalidInputError with the field, the found value and the supported ones. `where`: the file's path for the
 * message.
 */
export function readDecoderConfig(configJson: unknown, where = 'config.json'): DecoderConfig {
  const fields = new Fields(configJson, where);
  const family = readFamily(fields);
  refuseUnsupported(fields);

  const hidden = fields.size('hidden_size', undefined, modelLimits.hidden);
  const heads = fields.size('num_attention_heads', undefined, modelLimits.heads);
  const layers = fields.size('num_hidden_layers', undefined, modelLimits.layers);
  const headDim = readHeadDim(fields, family, hidden, heads);
  const kvHeads = readKvHeads(fields, family, heads);
  const maxPositions = fields.size('max_position_embeddings', family === 'llama' ? 2048 : 32768, modelLimits.positions);
  const attentionBias = family !== 'qwen2' && fields.flag('attention_bias', false);
  return {
    family,
    layers,
    hidden,
    heads,
    kvHeads,
    headDim,
    ffn: fields.size('intermediate_size', undefined, modelLimits.ffn),
    vocab: fields.size('vocab_size', undefined, modelLimits.vocab),
    normEps: fields.positive('rms_norm_eps', 1e-6),
    tied: fields.flag('tie_word_embeddings', false),
    qkvBias: family === 'qwen2' || attentionBias,
    outBias: attentionBias,
    mlpBias: family === 'llama' && fields.flag('mlp_bias', false),
    qkNorm: family === 'qwen3',
    ropeInvFreq: ropeInverseFrequencies(fields, headDim, maxPositions),
    windows: readWindows(fields, family, layers),
    maxPositions,
  };
}

export interface ExpectedTensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** Every tensor of a checkpoint, names ascending by code units: the canonical order of the flat buffers. */
export function expectedTensors(config: DecoderConfig): ExpectedTensor[] {
  const { hidden, vocab } = config;
  const tensors: ExpectedTensor[] = [
    { name: 'model.embed_tokens.weight', shape: [vocab, hidden] },
    { name: 'model.norm.weight', shape: [hidden] },
  ];
  if (!config.tied) tensors.push({ name: 'lm_head.weight', shape: [vocab, hidden] });
  for (let layer = 0; layer < config.layers; layer++) tensors.push(...layerTensors(config, `model.layers.${layer}.`));
  return tensors.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function layerTensors(config: DecoderConfig, prefix: string): ExpectedTensor[] {
  const { hidden, headDim, ffn } = config;
  const tensors: ExpectedTensor[] = [];
  const linear = (name: string, rows: number, columns: number, bias: boolean): void => {
    tensors.push({ name: `${prefix}${name}.weight`, shape: [rows, columns] });
    if (bias) tensors.push({ name: `${prefix}${name}.bias`, shape: [rows] });
  };
  const norm = (name: string, width: number): void => {
    tensors.push({ name: `${prefix}${name}.weight`, shape: [width] });
  };
  norm('input_layernorm', hidden);
  norm('post_attention_layernorm', hidden);
  linear('self_attn.q_proj', config.heads * headDim, hidden, config.qkvBias);
  linear('self_attn.k_proj', config.kvHeads * headDim, hidden, config.qkvBias);
  linear('self_attn.v_proj', config.kvHeads * headDim, hidden, config.qkvBias);
  linear('self_attn.o_proj', hidden, config.heads * headDim, config.outBias);
  if (config.qkNorm) {
    norm('self_attn.q_norm', headDim);
    norm('self_attn.k_norm', headDim);
  }
  linear('mlp.gate_proj', ffn, hidden, config.mlpBias);
  linear('mlp.up_proj', ffn, hidden, config.mlpBias);
  linear('mlp.down_proj', hidden, ffn, config.mlpBias);
  return tensors;
}

function readFamily(fields: Fields): Family {
  const supported = `supported: ${Object.keys(supportedArchitectures).join(', ')}`;
  const architectures = fields.get('architectures');
  const modelType = fields.get('model_type');
  const families = Object.values(supportedArchitectures);
  if (architectures === undefined || architectures === null) {
    const byType = families.find((family) => family === modelType);
    if (byType !== undefined) return byType;
    throw refusal(fields, `model_type ${show(modelType)} is not supported; ${supported}`);
  }
  const name: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  if (typeof name !== 'string' || !Object.hasOwn(supportedArchitectures, name)) {
    throw refusal(fields, `architecture ${show(name ?? architectures)} is not supported; ${supported}`);
  }
  const family = supportedArchitectures[name] as Family;
  if (modelType !== undefined && modelType !== null && modelType !== family) {
    throw refusal(fields, `model_type ${show(modelType)} does not go with architecture ${name} (expected "${family}")`);
  }
  return family;
}

function refuseUnsupported(fields: Fields): void {
  const activation = fields.get('hidden_act') ?? 'silu';
  if (activation !== 'silu' && activation !== 'swish') {
    throw refusal(fields, `activation (hidden_act) ${show(activation)} is not supported; supported: silu`);
  }
  const dtype = fields.get('dtype') ?? fields.get('torch_dtype') ?? 'float32';
  const plain = typeof dtype === 'string' ? dtype.replace(/^torch\./, '') : dtype;
  if (plain !== 'auto' && !supportedDtypes.some((known) => known === plain)) {
    throw refusal(fields, `dtype ${show(dtype)} is not supported; supported: ${supportedDtypes.join(', ')}`);
  }
  const quantization = fields.get('quantization_config');
  if (quantization !== undefined && quantization !== null) {
    throw refusal(
      fields,
      'quantized weights (quantization_config) are not supported; use the float32, bfloat16 or float16 checkpoint',
    );
  }
}

function readHeadDim(fields: Fields, family: Family, hidden: number, heads: number): number {
  const familyDefault = family === 'qwen3' && !fields.has('head_dim') ? 128 : undefined;
  const given = fields.get('head_dim') ?? familyDefault;
  if (given === undefined && hidden % heads !== 0) {
    throw refusal(
      fields,
      `hidden_size ${hidden} is not a multiple of num_attention_heads ${heads}, and head_dim is not given`,
    );
  }
  const headDim = given === undefined ? hidden / heads : fields.size('head_dim', familyDefault, modelLimits.headDim);
  if (heads * headDim > modelLimits.queryWidth) {
    throw refusal(
      fields,
      `num_attention_heads ${heads} times head_dim ${headDim} is ${heads * headDim}, the most is ${modelLimits.queryWidth}`,
    );
  }
  if (headDim % 2 !== 0) throw refusal(fields, `head_dim must be even (rope turns pairs), found ${headDim}`);
  return headDim;
}

/** Absent: as many as heads (llama) or 32 (qwen); null: as many as heads. */
function readKvHeads(fields: Fields, family: Family, heads: number): number {
  const absent = fields.has('num_key_value_heads') || family === 'llama' ? heads : 32;
  const kvHeads = fields.size('num_key_value_heads', absent, modelLimits.kvHeads);
  if (heads % kvHeads !== 0) {
    throw refusal(fields, `num_attention_heads ${heads} is not a multiple of num_key_value_heads ${kvHeads}`);
  }
  return kvHeads;
}

/**
 * Qwen uses a window only with `use_sliding_window`, and then from layer `max_window_layers` on, unless `layer_types`
 * lists the layers. A llama has no window, whatever other keys say.
 */
function readWindows(fields: Fields, family: Family, layers: number): number[] {
  const types = readLayerTypes(fields, layers);
  if (family === 'llama') {
    if (types?.includes('sliding_attention'))
      throw refusal(fields, 'layer_types: "sliding_attention" is not supported for llama');
    return new Array<number>(layers).fill(0);
  }
  const slides =
    fields.flag('use_sliding_window', false) &&
    (!fields.has('sliding_window') || fields.get('sliding_window') !== null);
  const window = slides ? fields.size('sliding_window', 4096) : 0;
  const from = fields.count('max_window_layers', 28);
  const sliding = (layer: number): boolean =>
    types === undefined ? layer >= from : types[layer] === 'sliding_attention';
  if (!slides && types?.includes('sliding_attention')) {
    throw refusal(fields, 'layer_types names sliding_attention, but use_sliding_window or sliding_window is off');
  }
  return Array.from({ length: layers }, (_, layer) => (slides && sliding(layer) ? window : 0));
}

function readLayerTypes(fields: Fields, layers: number): readonly unknown[] | undefined {
  const types = fields.get('layer_types') ?? undefined;
  if (types === undefined) return undefined;
  if (!Array.isArray(types) || types.length !== layers) throw fields.refuse('layer_types', `a list of ${layers} names`);
  for (const type of types as unknown[]) {
    if (type !== 'full_attention' && type !== 'sliding_attention') {
      throw refusal(fields, `layer type ${show(type)} is not supported; supported: full_attention, sliding_attention`);
    }
  }
  return types;
}

function refusal(fields: Fields, message: string): InvalidInputError {
  return new InvalidInputError(`${fields.where}: ${message}`, { where: fields.where });
}
