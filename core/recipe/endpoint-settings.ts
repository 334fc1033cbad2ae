import type { EndpointSettings } from '../endpoint.ts';
import type { Recipe } from './schema.ts';

/** What a recipe's reward jobs ask. undefined: neither an endpoint nor limits. */
export function endpointSettings({ reward }: Pick<Recipe, 'reward'>): EndpointSettings | undefined {
  const { endpoint: own, scorer, custom_reward_function: custom, reward_manager: manager } = reward;
  if (own.url === null && manager.name !== 'rate_limited') return undefined;
  const judges = custom.path === null && scorer === 'judge';
  const range = own.score_range ?? (judges ? ([0, 1] as const) : null);
  return {
    ...(own.url !== null && { url: own.url }),
    ...(own.model !== null && { model: own.model }),
    ...(own.api_key !== null && { apiKey: own.api_key }),
    limits: {
      concurrent: own.max_concurrent ?? (manager.name === 'rate_limited' ? 1 : 8),
      ...(own.max_rpm !== null && { rpm: own.max_rpm }),
      ...(own.max_tpm !== null && { tpm: own.max_tpm }),
    },
    tokensPerRequest: own.estimated_tokens_per_request,
    retries: own.max_retries,
    timeoutMs: Math.round(own.timeout * 1000),
    ...(judges && { question: questionOf(own) }),
    ...(range !== null && { range }),
  };
}

function questionOf(own: Recipe['reward']['endpoint']): NonNullable<EndpointSettings['question']> {
  const given = { temperature: own.temperature, top_p: own.top_p, max_tokens: own.max_tokens, ...own.extra_body };
  return {
    ...(own.system !== null && { system: own.system }),
    template: own.template,
    sampling: Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)),
    score: own.score_field === null ? { pattern: own.score_pattern } : { field: own.score_field },
  };
}
