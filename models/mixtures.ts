/** Mixtures of experts, as their config.json names them. */

/** Families for which transformers has an auxiliary loss of the routers, and can tell the logits of each router. */
export const familiesWithRouterLoss: ReadonlySet<string> = new Set([
  ...['deepseek_v4', 'doge', 'ernie4_5_moe', 'flex_olmo', 'flint', 'gpt_oss', 'granitemoe', 'granitemoe_swa'],
  ...['granitemoehybrid', 'granitemoeshared', 'jamba', 'laguna', 'lara_mini', 'mellum', 'minimax', 'minimax_m2'],
  ...['minimax_m3_vl_text', 'mixtral', 'olmoe', 'phimoe', 'qwen2_moe', 'qwen3_5_moe_text', 'qwen3_moe', 'qwen3_next'],
]);
