/** How the layers of a decoder of transformers reach other tokens, as its config.json lists them. */
import type { JsonObject } from './fields.ts';

/** Names of before, which transformers still reads. */
const presentNames: Readonly<Record<string, string>> = {
  attention: 'full_attention',
  mamba: 'linear_attention',
  deepseek_sparse_attention: 'indexed_attention',
  qwen_sparse_attention: 'indexed_attention',
};

/** The type of each layer. Empty: the config lists none, and the family decides. */
export function layerTypesOf({ layer_types: types, layers_block_type: older }: JsonObject): readonly string[] {
  const listed = types ?? older;
  return Array.isArray(listed) ? listed.map((type) => presentNames[String(type)] ?? String(type)) : [];
}

/** Types that attend to every token before, or to the last ones. The torch engine needs no mask for them. */
export const plainTypes: readonly string[] = ['full_attention', 'sliding_attention'];

/** Types that only attend: BY_MASK of engines/torch/petrel_torch/attention.py. Others carry a state, or both. */
export const attendingTypes: readonly string[] = [
  ...plainTypes,
  'chunked_attention',
  'indexed_attention',
  'minimax_m3_sparse',
];

/** Families of which some layers carry a state from token to token where the config lists no types. */
export const familiesWithState: ReadonlySet<string> = new Set([
  ...['bailing_hybrid', 'bamba', 'deepseek_v4', 'falcon_h1', 'falcon_mamba', 'granitemoehybrid', 'jamba'],
  ...['kimi_linear', 'lara_mini', 'lfm2', 'lfm2_moe', 'lfm3', 'mamba', 'mamba2', 'minimax', 'nemotron_h'],
  ...['olmo_hybrid', 'qwen3_5_text', 'qwen3_5_moe_text', 'qwen3_next', 'qwen4_exp_text', 'recurrent_gemma'],
  ...['rwkv', 'xlstm', 'zamba', 'zamba2', 'zaya'],
]);
