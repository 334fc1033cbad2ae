/**
 * The shapes of a decoder's parameters, from its config.json alone, whatever engine runs it. It knows the keys that
 * transformers' decoders share: dense blocks (llama, mistral, qwen, gemma, phi and others with their keys), mixtures of
 * experts, and multi-head latent attention (deepseek_v3). Another family with these keys is taken to be built alike.
 *
 * Legend: H hidden size, V words, E experts of a layer.
 */
import type { HeadKind } from '../core/ports/policy.ts';
import { headOfConfig, labelsOf, scoreConfig } from './config.ts';
import { Fields } from './fields.ts';
import type { JsonObject } from './fields.ts';
import { layerTypesOf, plainTypes } from './layer-types.ts';

/** A tensor as a model's files have it. */
export interface ParameterShape {
  readonly name: string;
  readonly shape: readonly number[];
  /** How many experts have a tensor of this shape, and how many of them a token meets. Absent: it is of no expert. */
  readonly experts?: { readonly count: number; readonly chosen: number };
}

/** Widths of attention, in values for each token. */
export interface AttentionShape {
  readonly heads: number;
  /** Queries of all heads. */
  readonly query: number;
  /** Values of all heads, after groups of heads have got theirs: what attention gives. */
  readonly value: number;
  /** What a cache keeps for each position: keys and values, or the latents of both. */
  readonly cached: number;
  /** Widths of what is normalised inside: queries and keys by head, or latents. */
  readonly normalised: number;
  /** Scores are capped, which only the plain form of attention does. */
  readonly isCapped: boolean;
  /** The torch engine leaves the model its own attention, with a mask of a whole pack. */
  readonly isMasked: boolean;
}

/** Widths of the block after attention. */
export interface FeedForwardShape {
  /** Width of the block that every token meets: a dense one, or shared experts. 0: there is none. */
  readonly width: number;
  /** Experts that a token meets, and the width of one. */
  readonly chosen: number;
  readonly expertWidth: number;
}

export interface LayerShape {
  readonly parameters: readonly ParameterShape[];
  readonly attention: AttentionShape;
  readonly feedForward: FeedForwardShape;
  /** Norms of the residual stream. */
  readonly norms: number;
}

export interface DecoderShape {
  readonly hidden: number;
  readonly vocab: number;
  readonly layers: readonly LayerShape[];
  /** Embedding, last norm and head. A tied head is the embedding. */
  readonly rest: readonly ParameterShape[];
  readonly isTied: boolean;
}

/**
 * The shapes of a model with this head. Throws InvalidInputError for a config that lacks a key of transformers'
 * decoders.
 */
export function readDecoderShape(
  configJson: JsonObject,
  head: HeadKind = 'tokens',
  where = 'config.json',
): DecoderShape {
  const config = new Fields(configJson, where);
  const family = familyOf(config);
  const hidden = config.size('hidden_size');
  const vocab = config.size('vocab_size');
  const isTied = head === 'tokens' && config.flag('tie_word_embeddings', family.isTied);
  const layers = Array.from({ length: config.size('num_hidden_layers') }, (_, index) => layerOf(config, family, index));
  const rest = [
    matrix('model.embed_tokens', vocab, hidden),
    vector('model.norm', hidden),
    ...(isTied ? [] : headOf(configJson, config, head)),
  ];
  return { hidden, vocab, layers, rest, isTied };
}

/** Elements of these tensors. `met`: only of the experts that a token meets. */
export const elementsOf = (parameters: readonly ParameterShape[], met = false): number =>
  parameters.reduce((sum, { shape, experts }) => {
    const copies = experts === undefined ? 1 : met ? experts.chosen : experts.count;
    return sum + copies * shape.reduce((product, size) => product * size, 1);
  }, 0);

/** Elements of all parameters. */
export const parametersOf = ({ layers, rest }: DecoderShape): number =>
  elementsOf([...layers.flatMap(({ parameters }) => parameters), ...rest]);

/** Elements that a token is multiplied with: of a mixture only its experts, and the embedding only as a tied head. */
export const activeParametersOf = ({ layers, rest, isTied }: DecoderShape): number =>
  elementsOf([...layers.flatMap(({ parameters }) => parameters), ...rest.slice(isTied ? 0 : 1)], true);

/** Linear layers that an adapter can be put beside: those of the blocks, without experts and routers. */
export const linearLayersOf = ({ layers }: DecoderShape) =>
  layers
    .flatMap(({ parameters }) => parameters)
    .filter(({ name, shape, experts }) => shape.length === 2 && experts === undefined && !isRouter(name))
    .map(({ name, shape: [out = 0, width = 0] }) => ({ path: name.replace(/\.weight$/, ''), out, in: width }));

const isRouter = (name: string): boolean => /\.(?:gate|router)\.weight$/.test(name);

/** How the layers of a family differ from llama's. */
interface Family {
  readonly isTied: boolean;
  /** Size of a head; absent: the hidden size divided by the heads. */
  readonly headDim?: number;
  /** Queries, keys and values have biases whatever the config says. */
  readonly hasBiases?: true;
  /** Queries and keys are normalised by head. */
  readonly normalisesHeads?: true;
  /** Norms stand after the blocks, too. */
  readonly normsAfter?: true;
  /** Queries, keys and values are one tensor, and so are gate and up. */
  readonly isJoined?: true;
}

const llama: Family = { isTied: false };
const gemma: Family = { isTied: true, headDim: 256 };

/** Maps `model_type` to its family; others are built as llama. */
const families: Readonly<Record<string, Family>> = {
  qwen2: { ...llama, hasBiases: true },
  qwen2_moe: { ...llama, hasBiases: true },
  qwen3: { ...llama, headDim: 128, normalisesHeads: true },
  qwen3_moe: { ...llama, normalisesHeads: true },
  gemma,
  gemma2: { ...gemma, normsAfter: true },
  gemma3_text: { ...gemma, normsAfter: true, normalisesHeads: true },
  phi3: { ...llama, isJoined: true },
};

const familyOf = (config: Fields): Family => families[config.text('model_type', 'llama')] ?? llama;

function layerOf(config: Fields, family: Family, index: number): LayerShape {
  const at = `model.layers.${index}`;
  const hidden = config.size('hidden_size');
  const norms = family.normsAfter ? normsAround : normsBefore;
  const attention = config.get('kv_lora_rank') == null ? groupedAttention : latentAttention;
  const mixer = attention(config, family, `${at}.self_attn`);
  const block = feedForwardOf(config, family, index, `${at}.mlp`);
  return {
    parameters: [...norms.map((name) => vector(`${at}.${name}`, hidden)), ...mixer.parameters, ...block.parameters],
    attention: mixer.shape,
    feedForward: block.shape,
    norms: norms.length,
  };
}

const normsBefore = ['input_layernorm', 'post_attention_layernorm'];
const normsAround = [...normsBefore, 'pre_feedforward_layernorm', 'post_feedforward_layernorm'];

interface Block<Shape> {
  readonly parameters: readonly ParameterShape[];
  readonly shape: Shape;
}

/** Groups of heads share keys and values. */
function groupedAttention(config: Fields, family: Family, at: string): Block<AttentionShape> {
  const hidden = config.size('hidden_size');
  const heads = config.size('num_attention_heads');
  const headDim = config.size('head_dim', family.headDim ?? Math.max(1, Math.floor(hidden / heads)));
  const [query, kv] = [heads * headDim, config.size('num_key_value_heads', heads) * headDim];
  const isBiased = family.hasBiases ?? config.flag('attention_bias', false);
  const inputs = family.isJoined
    ? [linear(`${at}.qkv_proj`, query + 2 * kv, hidden, isBiased)]
    : [
        linear(`${at}.q_proj`, query, hidden, isBiased),
        linear(`${at}.k_proj`, kv, hidden, isBiased),
        linear(`${at}.v_proj`, kv, hidden, isBiased),
      ];
  const norms = family.normalisesHeads ? [vector(`${at}.q_norm`, headDim), vector(`${at}.k_norm`, headDim)] : [];
  const output = linear(`${at}.o_proj`, hidden, query, isBiased && !family.hasBiases);
  return {
    parameters: [...inputs.flat(), ...output, ...norms],
    shape: {
      ...ownAttention(config),
      heads,
      query,
      value: query,
      cached: 2 * kv,
      normalised: family.normalisesHeads ? query + kv : 0,
    },
  };
}

/** Their scores take part with sinks beside them, which only the plain form of attention does. */
const familiesWithSinks: ReadonlySet<string> = new Set(['gpt_oss']);

/** What a model keeps of its own attention in the torch engine (engines/torch/petrel_torch/attention.py). */
function ownAttention(config: Fields): Pick<AttentionShape, 'isCapped' | 'isMasked'> {
  const isCapped = config.get('attn_logit_softcapping') != null;
  const types = layerTypesOf(config.object);
  const hasSinks = familiesWithSinks.has(String(config.get('model_type')));
  const isMasked = isCapped || hasSinks || types.some((type) => !plainTypes.includes(type));
  return { isCapped, isMasked };
}

/** Keys and values of all heads come from one latent vector, which is what a cache keeps (DeepSeek-V2, V3). */
function latentAttention(config: Fields, _family: Family, at: string): Block<AttentionShape> {
  const hidden = config.size('hidden_size');
  const heads = config.size('num_attention_heads');
  const [latent, rope] = [config.size('kv_lora_rank'), config.size('qk_rope_head_dim')];
  const [plain, valueDim] = [config.size('qk_nope_head_dim'), config.size('v_head_dim')];
  const [query, value] = [heads * (plain + rope), heads * valueDim];
  const queryLatent = config.get('q_lora_rank') == null ? 0 : config.size('q_lora_rank');
  const isBiased = config.flag('attention_bias', false);
  const queries =
    queryLatent === 0
      ? linear(`${at}.q_proj`, query, hidden, false)
      : [
          ...linear(`${at}.q_a_proj`, queryLatent, hidden, isBiased),
          vector(`${at}.q_a_layernorm`, queryLatent),
          ...linear(`${at}.q_b_proj`, query, queryLatent, false),
        ];
  return {
    parameters: [
      ...queries,
      ...linear(`${at}.kv_a_proj_with_mqa`, latent + rope, hidden, isBiased),
      vector(`${at}.kv_a_layernorm`, latent),
      ...linear(`${at}.kv_b_proj`, heads * (plain + valueDim), latent, false),
      ...linear(`${at}.o_proj`, hidden, value, isBiased),
    ],
    shape: { ...ownAttention(config), heads, query, value, cached: latent + rope, normalised: queryLatent + latent },
  };
}

function feedForwardOf(config: Fields, family: Family, index: number, at: string): Block<FeedForwardShape> {
  const experts = expertsOf(config);
  if (experts === 0 || !isMixture(config, index)) {
    const width = config.size('intermediate_size');
    return { parameters: gatedUnit(config, family, at, width), shape: { width, chosen: 0, expertWidth: 0 } };
  }
  const hidden = config.size('hidden_size');
  const expertWidth = config.size('moe_intermediate_size', config.size('intermediate_size', 1));
  const chosen = config.size('num_experts_per_tok');
  const ofExperts = gatedUnit(config, llama, `${at}.experts.0`, expertWidth).map((one) => ({
    ...one,
    experts: { count: experts, chosen },
  }));
  const shared = sharedOf(config, expertWidth);
  return {
    parameters: [
      matrix(`${at}.gate`, experts, hidden),
      // The bias by which experts are chosen.
      ...(config.has('topk_method') || config.get('model_type') === 'deepseek_v3'
        ? [{ name: `${at}.gate.e_score_correction_bias`, shape: [experts] }]
        : []),
      ...ofExperts,
      ...(shared.width === 0 ? [] : gatedUnit(config, llama, `${at}.${shared.name}`, shared.width)),
      ...(shared.isGated ? [matrix(`${at}.shared_expert_gate`, 1, hidden)] : []),
    ],
    shape: { width: shared.width, chosen, expertWidth },
  };
}

/** Every family has its own word for the number of experts. 0: the model is dense. */
function expertsOf(config: Fields): number {
  const name = ['num_local_experts', 'num_experts', 'n_routed_experts'].find((one) => config.get(one) != null);
  return name === undefined ? 0 : config.count(name);
}

/** Experts that every token meets, as one block. */
function sharedOf(config: Fields, expertWidth: number) {
  const gated = config.count('shared_expert_intermediate_size', 0);
  if (gated > 0) return { name: 'shared_expert', width: gated, isGated: true };
  return { name: 'shared_experts', width: config.count('n_shared_experts', 0) * expertWidth, isGated: false };
}

/** Mixtures may begin with dense layers (DeepSeek), or have them between (Qwen). */
function isMixture(config: Fields, index: number): boolean {
  const dense = config.get('mlp_only_layers');
  if (Array.isArray(dense) && dense.includes(index)) return false;
  return index >= config.count('first_k_dense_replace', 0) && (index + 1) % config.size('decoder_sparse_step', 1) === 0;
}

/** down(activation(gate(x)) * up(x)). */
function gatedUnit(config: Fields, { isJoined }: Family, at: string, width: number): ParameterShape[] {
  const hidden = config.size('hidden_size');
  const isBiased = config.flag('mlp_bias', false);
  const inputs = isJoined
    ? linear(`${at}.gate_up_proj`, 2 * width, hidden, isBiased)
    : [...linear(`${at}.gate_proj`, width, hidden, isBiased), ...linear(`${at}.up_proj`, width, hidden, isBiased)];
  return [...inputs, ...linear(`${at}.down_proj`, hidden, width, isBiased)];
}

/** transformers gives a head of values a bias, and one of scores none. */
function headOf(configJson: JsonObject, config: Fields, head: HeadKind): ParameterShape[] {
  const hidden = config.size('hidden_size');
  if (head === 'tokens') return [matrix('lm_head', config.size('vocab_size'), hidden)];
  const labels =
    head === 'scores' && headOfConfig(configJson) === 'scores'
      ? labelsOf(new Fields(scoreConfig(configJson), config.where))
      : 1;
  return linear('score', labels, hidden, head === 'values');
}

const matrix = (name: string, out: number, width: number): ParameterShape => ({
  name: `${name}.weight`,
  shape: [out, width],
});
const vector = (name: string, size: number): ParameterShape => ({ name: `${name}.weight`, shape: [size] });
const linear = (name: string, out: number, width: number, isBiased: boolean): ParameterShape[] => [
  matrix(name, out, width),
  ...(isBiased ? [{ name: `${name}.bias`, shape: [out] }] : []),
];
