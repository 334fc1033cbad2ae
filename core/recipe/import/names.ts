/** verl's paths in one form: without the wrapper, and with today's names for older ones. */

const WRAPPER = 'actor_rollout_ref.';

/** Names of older versions of verl, the first match decides. */
const FORMER: readonly (readonly [RegExp, string])[] = [
  [/^reward_model\.reward_manager$/, 'reward.reward_manager.name'],
  [/^reward_model\.(reward_kwargs|sandbox_fusion)\./, 'reward.$1.'],
  [/^reward_model\.(num_workers|launch_reward_fn_async|use_reward_loop)$/, 'reward.$1'],
  [/^reward_model\.(max_concurrent|max_rpm|max_tpm|estimated_tokens_per_request|timeout)$/, 'reward.$1'],
  [/^reward_model\.enable_resource_pool$/, 'reward.reward_model.enable_resource_pool'],
  [/^(reward_model|custom_reward_function|sandbox_fusion)\./, 'reward.$1.'],
  [/^(actor|critic)\.optim\.warmup_style$/, '$1.optim.lr_scheduler_type'],
];

/** Names of the trainer of supervised runs. */
const SUPERVISED: readonly (readonly [RegExp, string])[] = [
  [/^optim\./, 'actor.optim.'],
  [/^model\.partial_pretrain$/, 'model.path'],
  [/^model\.(fsdp_config|strategy)/, 'actor.$1'],
  [/^engine\./, 'actor.fsdp_config.'],
  [/^data\.(micro_batch_size_per_gpu|micro_batch_size)$/, 'actor.ppo_$1'],
  [/^data\.max_token_len_per_gpu$/, 'actor.ppo_max_token_len_per_gpu'],
  [/^data\.use_dynamic_bsz$/, 'actor.use_dynamic_bsz'],
  [/^checkpoint\./, 'actor.checkpoint.'],
  [/^profiler\./, 'actor.profiler.'],
];

/** `actor_rollout_ref.actor.optim.lr` → `actor.optim.lr`. */
export function plainPath(path: string, kind: 'rl' | 'sft'): string {
  const bare = path.startsWith(WRAPPER) ? path.slice(WRAPPER.length) : path;
  const tables = kind === 'sft' ? [...FORMER, ...SUPERVISED] : FORMER;
  const found = tables.find(([pattern]) => pattern.test(bare));
  return found === undefined ? bare : bare.replace(found[0], found[1]);
}
