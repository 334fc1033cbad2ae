/** Checks of `reward.endpoint`, and of the scorers and managers that use it. */
import { ENDPOINT_SCORERS } from '../endpoint.ts';
import { samplesResponses } from '../run-kinds.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';
import { isSecretReference } from './secrets.ts';

export function endpointIssues(recipe: Recipe): RecipeIssue[] {
  if (!samplesResponses(recipe.kind)) return [];
  const scorer = scorerAsking(recipe);
  if (recipe.reward.endpoint.url === null) return [...unnamedIssues(recipe, scorer), ...limitIssues(recipe)];
  return [
    ...urlIssues(recipe),
    ...keyIssues(recipe),
    ...askerIssues(recipe, scorer),
    ...determinismIssues(recipe),
    ...(scorer === 'judge' ? judgeIssues(recipe) : []),
    ...rangeIssues(recipe),
  ];
}

/** The built-in scorer that asks the endpoint, or a scorer of the user's own. */
function scorerAsking({ reward }: Recipe): 'own' | string | undefined {
  if (reward.custom_reward_function.path !== null) return 'own';
  return reward.scorer !== null && ENDPOINT_SCORERS.includes(reward.scorer) ? reward.scorer : undefined;
}

function unnamedIssues({ reward }: Recipe, scorer: string | undefined): RecipeIssue[] {
  if (scorer !== undefined && scorer !== 'own')
    return [
      {
        path: 'reward.endpoint.url',
        message: `the scorer ${scorer} needs an address to ask`,
        expected: scorer === 'judge' ? 'http://host:8000/v1' : 'http://host:9000/score',
        received: 'null',
      },
    ];
  const { max_rpm: rpm, max_tpm: tpm, model } = reward.endpoint;
  if (reward.reward_manager.name === 'rate_limited' || (rpm === null && tpm === null && model === null)) return [];
  return [
    {
      path: 'reward.endpoint.url',
      message: 'the endpoint has limits or a model, and no address, so nothing asks it',
      received: 'null',
      hint: 'name its address, or limit the calls of your own scorer with reward.reward_manager.name=rate_limited',
    },
  ];
}

/** The manager rate_limited without an endpoint: calls of the scorer are counted. */
function limitIssues(recipe: Recipe): RecipeIssue[] {
  if (recipe.reward.reward_manager.name !== 'rate_limited') return [];
  if (recipe.reward.endpoint.max_tpm === null || recipe.reward.endpoint.estimated_tokens_per_request > 0) return [];
  return [
    {
      path: 'reward.endpoint.estimated_tokens_per_request',
      message: 'max_tpm limits nothing when a call counts no tokens',
      expected: 'integer > 0',
      received: '0',
    },
  ];
}

function urlIssues({ reward }: Recipe): RecipeIssue[] {
  const url = reward.endpoint.url ?? '';
  if (isUrl(url)) return [];
  return [
    {
      path: 'reward.endpoint.url',
      message: 'this is no address of a service',
      expected: 'http://… or https://…: http://host:8000/v1',
      received: url,
    },
  ];
}

function isUrl(text: string): boolean {
  try {
    const { protocol, hostname } = new URL(text);
    return (protocol === 'http:' || protocol === 'https:') && hostname !== '' && !/\s/.test(text);
  } catch {
    return false;
  }
}

function keyIssues({ reward }: Recipe): RecipeIssue[] {
  const { api_key: value } = reward.endpoint;
  if (value === null || isSecretReference(value)) return [];
  const message = 'recipes are stored and shown, so a key is named and not written';
  return [{ path: 'reward.endpoint.api_key', message, expected: 'env:NAME', secret: true }];
}

function askerIssues({ reward }: Recipe, scorer: string | undefined): RecipeIssue[] {
  if (scorer === undefined)
    return [
      {
        path: 'reward.scorer',
        message: `nothing asks the endpoint: ${reward.scorer === null ? 'the rows choose their scorers' : `the scorer is ${reward.scorer}`}`,
        expected: `${ENDPOINT_SCORERS.join(', ')}, or reward.custom_reward_function.path`,
        received: `${reward.scorer}`,
      },
    ];
  if (!reward.sandbox) return [];
  return [
    {
      path: 'reward.sandbox',
      message: 'a scorer in a sandbox has no network, so it cannot ask the endpoint',
      expected: 'false',
      received: 'true',
      hint: 'the scorers judge and remote need no sandbox: they run no code',
    },
  ];
}

function determinismIssues({ deterministic }: Recipe): RecipeIssue[] {
  if (deterministic !== true) return [];
  return [
    {
      path: 'reward.endpoint.url',
      message: 'the answers of a service cannot be had again to the bit, and deterministic is true',
      expected: 'null',
      hint: 'write deterministic: replay, or score without an endpoint',
    },
  ];
}

function judgeIssues({ reward }: Recipe): RecipeIssue[] {
  const { model, template, score_field: field, score_pattern: pattern } = reward.endpoint;
  const issues: RecipeIssue[] = [];
  if (model === null)
    issues.push({
      path: 'reward.endpoint.model',
      message: 'a request to a chat model names the model',
      expected: 'its name, as the service lists it under /models',
      received: 'null',
    });
  if (!template.includes('{response}'))
    issues.push({
      path: 'reward.endpoint.template',
      message: 'the judge would not see the response',
      expected: 'a text with {response}',
    });
  const fault = field === null ? faultOfPattern(pattern) : undefined;
  if (fault !== undefined) issues.push({ path: 'reward.endpoint.score_pattern', message: fault, received: pattern });
  return issues;
}

function faultOfPattern(pattern: string): string | undefined {
  try {
    // With an empty alternative the expression matches any text, and the match shows its groups.
    const groups = (new RegExp(`${pattern}|`).exec('')?.length ?? 1) - 1;
    return groups === 0
      ? 'the score is the first group of the expression, and it has none: write (…) around it'
      : undefined;
  } catch (error) {
    return `this is no regular expression: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function rangeIssues({ reward }: Recipe): RecipeIssue[] {
  const range = reward.endpoint.score_range;
  if (range === null || range[0] < range[1]) return [];
  const message = 'the lowest score must be below the highest';
  return [{ path: 'reward.endpoint.score_range', message, received: `[${range.join(', ')}]` }];
}
