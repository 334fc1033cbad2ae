/** Parts that families share: the sizes in a config.json, attention, the gated unit, and a whole decoder of them. */
import type { Activation, GluSpec, GqaSpec, LayerSpec, LinearSpec, NormSpec } from '../spec.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import { pow } from '../../../core/math/pow.ts';
import { modelLimits } from '../../../core/model-limits.ts';
import { type Fields, show } from '../../../models/fields.ts';
import { ropeInverseFrequencies } from '../rope.ts';
import type { DecoderBody } from './family.ts';
import type { Tensors } from './tensors.ts';

export interface Sizes {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ffn: number;
  readonly vocab: number;
  readonly maxPositions: number;
  readonly eps: number;
}

/** What transformers uses where a config.json lacks the field. */
export interface SizeDefaults {
  readonly maxPositions: number;
  /** undefined: as many as heads. */
  readonly kvHeads?: number;
  /** undefined: hidden / heads. */
  readonly headDim?: number;
  /** undefined: 1e-6. */
  readonly eps?: number;
}

/** The sizes of a decoder. Throws InvalidInputError with the field, the found value and what is possible. */
export function readSizes(config: Fields, defaults: SizeDefaults): Sizes {
  const hidden = config.size('hidden_size', undefined, modelLimits.hidden);
  const heads = config.size('num_attention_heads', undefined, modelLimits.heads);
  return {
    layers: config.size('num_hidden_layers', undefined, modelLimits.layers),
    hidden,
    heads,
    kvHeads: readKvHeads(config, defaults, heads),
    headDim: readHeadDim(config, defaults, hidden, heads),
    ffn: config.size('intermediate_size', undefined, modelLimits.ffn),
    vocab: config.size('vocab_size', undefined, modelLimits.vocab),
    maxPositions: config.size('max_position_embeddings', defaults.maxPositions, modelLimits.positions),
    eps: config.positive('rms_norm_eps', defaults.eps ?? 1e-6),
  };
}

function readHeadDim(config: Fields, defaults: SizeDefaults, hidden: number, heads: number): number {
  const familyDefault = config.has('head_dim') ? undefined : defaults.headDim;
  const given = config.get('head_dim') ?? familyDefault;
  if (given === undefined && hidden % heads !== 0) {
    throw refusal(
      config,
      `hidden_size ${hidden} is not a multiple of num_attention_heads ${heads}, and head_dim is not given`,
    );
  }
  const headDim = given === undefined ? hidden / heads : config.size('head_dim', familyDefault, modelLimits.headDim);
  if (heads * headDim > modelLimits.queryWidth) {
    throw refusal(
      config,
      `num_attention_heads ${heads} times head_dim ${headDim} is ${heads * headDim}, the most is ${modelLimits.queryWidth}`,
    );
  }
  if (headDim % 2 !== 0) throw refusal(config, `head_dim must be even (rope turns pairs), found ${headDim}`);
  return headDim;
}

/** Absent: the family's default; null: as many as heads. */
function readKvHeads(config: Fields, defaults: SizeDefaults, heads: number): number {
  const absent = config.has('num_key_value_heads') ? heads : (defaults.kvHeads ?? heads);
  const kvHeads = config.size('num_key_value_heads', absent, modelLimits.kvHeads);
  if (heads % kvHeads !== 0) {
    throw refusal(config, `num_attention_heads ${heads} is not a multiple of num_key_value_heads ${kvHeads}`);
  }
  return kvHeads;
}

/** Parts of the attention of one layer that are not the same in all families. Absent: plain. */
export interface AttentionForm {
  readonly qkv: LinearSpec;
  readonly out: LinearSpec;
  readonly rope: readonly number[];
  readonly queryNorm?: NormSpec;
  readonly keyNorm?: NormSpec;
  /** Default: headDim^−0.5. */
  readonly scale?: number;
  readonly softcap?: number;
  readonly window?: number;
}

export function gqa({ heads, kvHeads, headDim }: Sizes, form: AttentionForm): GqaSpec {
  return { kind: 'gqa', heads, kvHeads, headDim, scale: pow(headDim, -0.5), softcap: 0, window: 0, ...form };
}

/** q_proj, k_proj and v_proj: three tensors for one product. `at`: `model.layers.0.self_attn`. */
export function separateQkv(tensors: Tensors, at: string, sizes: Sizes, bias: boolean): LinearSpec {
  const [query, kv] = [sizes.heads * sizes.headDim, sizes.kvHeads * sizes.headDim];
  return [
    tensors.linear(`${at}.q_proj`, query, sizes.hidden, bias),
    tensors.linear(`${at}.k_proj`, kv, sizes.hidden, bias),
    tensors.linear(`${at}.v_proj`, kv, sizes.hidden, bias),
  ];
}

/** gate_proj, up_proj and down_proj. `at`: `model.layers.0.mlp`. */
export function separateGlu(tensors: Tensors, at: string, sizes: Sizes, activation: Activation, bias = false): GluSpec {
  const { hidden, ffn } = sizes;
  return {
    kind: 'glu',
    width: ffn,
    activation,
    gateUp: [tensors.linear(`${at}.gate_proj`, ffn, hidden, bias), tensors.linear(`${at}.up_proj`, ffn, hidden, bias)],
    down: [tensors.linear(`${at}.down_proj`, hidden, ffn, bias)],
  };
}

/** A norm before each block, as in Llama. `at`: `model.layers.0`. */
export function normsBefore(tensors: Tensors, at: string, { hidden, eps }: Sizes): LayerSpec['norms'] {
  return {
    beforeMixer: tensors.norm(`${at}.input_layernorm`, hidden, eps),
    beforeFfn: tensors.norm(`${at}.post_attention_layernorm`, hidden, eps),
  };
}

/** The decoder of these layers, with a plain embedding and an untied head unless `more` says otherwise. */
export function decoder(
  tensors: Tensors,
  sizes: Sizes,
  layer: (at: string, index: number) => LayerSpec,
  more: Partial<DecoderBody> = {},
): DecoderBody {
  const { hidden, vocab, maxPositions, eps } = sizes;
  return {
    hidden,
    vocab,
    maxPositions,
    embedding: { table: tensors.table('model.embed_tokens', vocab, hidden), scale: 1 },
    layers: Array.from({ length: sizes.layers }, (_, index) => layer(`model.layers.${index}`, index)),
    finalNorm: tensors.norm('model.norm', hidden, eps),
    tiedByDefault: false,
    logitSoftcap: 0,
    ...more,
  };
}

/** Inverse frequencies that all layers share. */
export function sharedRope(config: Fields, { headDim, maxPositions }: Sizes): readonly number[] {
  return ropeInverseFrequencies(config, headDim, maxPositions);
}

/** Throws unless `hidden_act` (or the given field) names the activation. */
export function readActivation(
  config: Fields,
  field: string,
  names: Readonly<Record<string, Activation>>,
  fallback: string,
): Activation {
  const name = config.get(field) ?? fallback;
  const activation = typeof name === 'string' && Object.hasOwn(names, name) ? names[name] : undefined;
  if (activation !== undefined) return activation;
  throw refusal(
    config,
    `activation (${field}) ${show(name)} is not supported; supported: ${Object.keys(names).join(', ')}`,
  );
}

export const siluNames = { silu: 'silu', swish: 'silu' } as const;

/** `layer_types`, one of `full_attention` and `sliding_attention` per layer; undefined when absent. */
export function readLayerTypes(config: Fields, layers: number): readonly unknown[] | undefined {
  const types = config.get('layer_types') ?? undefined;
  if (types === undefined) return undefined;
  if (!Array.isArray(types) || types.length !== layers) throw config.refuse('layer_types', `a list of ${layers} names`);
  for (const type of types as unknown[]) {
    if (type !== 'full_attention' && type !== 'sliding_attention') {
      throw refusal(config, `layer type ${show(type)} is not supported; supported: full_attention, sliding_attention`);
    }
  }
  return types;
}

/** Refuses layers that should slide where no window says how far. */
export function refuseWithoutWindow(config: Fields, types: readonly unknown[] | undefined, window: number): void {
  if (window === 0 && types?.includes('sliding_attention') === true)
    throw refusal(config, 'layer_types names sliding_attention, but sliding_window is null: set one of the two');
}

/** A window that null turns off and whose absence means the family's default; a default of 0 is none. */
export function readWindow(config: Fields, fallback: number): number {
  const none = config.has('sliding_window') ? config.get('sliding_window') === null : fallback === 0;
  return none ? 0 : config.size('sliding_window', fallback);
}

export function refusal(config: Fields, message: string): InvalidInputError {
  return new InvalidInputError(`${config.where}: ${message}`, { where: config.where });
}
