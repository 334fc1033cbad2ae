import { describe, expect, it } from 'vitest';
import { jobInput } from '../wire/jobs/index.ts';
import { endpointSettings } from './endpoint-settings.ts';
import { rewardManagerOf } from './components.ts';
import { checkRecipe, parseRecipe } from './parse.ts';
import { runIssues } from './runnable.ts';

const tree = (reward: object, more: object = {}) => ({
  model: { path: 'm' },
  rollout: { n: 8 },
  data: { train_files: 'a' },
  reward,
  ...more,
});
const recipe = (reward: object, more?: object) => parseRecipe(tree(reward, more));
const issues = (reward: object, more?: object) =>
  runIssues(recipe(reward, more)).map(({ path, message }) => `${path}: ${message}`);

const endpoint = { url: 'http://host:8000/v1', model: 'judge-7b' };
const own = { custom_reward_function: { path: './s.py' } };

describe('reward.endpoint', () => {
  it('is absent where nothing asks, so that jobs are as before', () => {
    expect(endpointSettings(recipe({ scorer: 'gsm8k' }))).toBeUndefined();
  });

  it('becomes what a job carries, with a place for the key and without the key', () => {
    const made = recipe({
      scorer: 'judge',
      endpoint: {
        ...endpoint,
        api_key: 'env:JUDGE_KEY',
        max_rpm: 60,
        top_p: 0.5,
        extra_body: { seed: 1, max_tokens: null },
      },
    });
    expect(runIssues(made)).toEqual([]);
    const settings = endpointSettings(made);
    expect(settings).toMatchObject({
      url: endpoint.url,
      model: 'judge-7b',
      apiKey: 'env:JUDGE_KEY',
      limits: { concurrent: 8, rpm: 60 },
      retries: 8,
      timeoutMs: 300_000,
      range: [0, 1],
      question: { sampling: { temperature: 0, top_p: 0.5, seed: 1 } },
    });
    expect(settings?.question?.sampling).not.toHaveProperty('max_tokens');
    const input = {
      trajectories: 'a'.repeat(64),
      model: 'a'.repeat(64),
      dataset: 'a'.repeat(64),
      scorer: { type: 'builtin', name: 'judge', revision: '1' },
      settings: {},
      timeoutMs: 1,
      memoryMb: 1,
      concurrency: 1,
      deterministic: false,
    };
    expect(() => jobInput('reward', { ...input, endpoint: settings })).not.toThrow();
    expect(() => jobInput('reward', { ...input, endpoint: { ...settings, apiKey: 'sk-1' } })).toThrow(
      'endpoint.apiKey',
    );
  });

  it.each([
    ['no address', { scorer: 'judge' }, 'reward.endpoint.url: the scorer judge needs an address'],
    ['no address, remote', { scorer: 'remote' }, 'reward.endpoint.url: the scorer remote needs an address'],
    [
      'a wrong address',
      { scorer: 'judge', endpoint: { ...endpoint, url: 'host:8000/v1' } },
      'reward.endpoint.url: this is no address',
    ],
    [
      'an address with a space',
      { scorer: 'judge', endpoint: { ...endpoint, url: 'http://a b/' } },
      'reward.endpoint.url: this is no address',
    ],
    ['no model', { scorer: 'judge', endpoint: { url: endpoint.url } }, 'reward.endpoint.model: '],
    [
      'a template without the response',
      { scorer: 'judge', endpoint: { ...endpoint, template: '{prompt}' } },
      'reward.endpoint.template: the judge would not see',
    ],
    [
      'a wrong pattern',
      { scorer: 'judge', endpoint: { ...endpoint, score_pattern: '(' } },
      'reward.endpoint.score_pattern: this is no regular expression',
    ],
    [
      'a pattern without a group',
      { scorer: 'judge', endpoint: { ...endpoint, score_pattern: '[0-9]' } },
      'reward.endpoint.score_pattern: the score is the first group',
    ],
    [
      'an empty range',
      { scorer: 'judge', endpoint: { ...endpoint, score_range: [1, 1] } },
      'reward.endpoint.score_range: ',
    ],
    ['nobody who asks', { scorer: 'gsm8k', endpoint }, 'reward.scorer: nothing asks the endpoint: the scorer is gsm8k'],
    ['rows that choose', { endpoint }, 'reward.scorer: nothing asks the endpoint: the rows choose'],
    [
      'limits of nothing',
      { ...own, endpoint: { max_rpm: 5 } },
      'reward.endpoint.url: the endpoint has limits or a model',
    ],
    ['a sandbox', { ...own, sandbox: true, endpoint }, 'reward.sandbox: a scorer in a sandbox has no network'],
  ])('with %s is refused at parse', (_, reward, issue) => {
    const found = issues(reward);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(issue);
  });

  it('is refused by deterministic: true, and allowed by replay', () => {
    expect(issues({ scorer: 'judge', endpoint }, { deterministic: true })).toEqual([
      expect.stringContaining('reward.endpoint.url: the answers of a service cannot be had again'),
    ]);
    expect(issues({ scorer: 'judge', endpoint }, { deterministic: 'replay' })).toEqual([]);
  });

  it('takes the name of a key and never a key', () => {
    const key = 'sk-0123456789abcdefghij';
    for (const api_key of [key, 'my-own-key']) {
      const checked = checkRecipe(tree({ scorer: 'judge', endpoint: { ...endpoint, api_key } }));
      expect(JSON.stringify(checked)).toContain('reward.endpoint.api_key');
      expect(JSON.stringify('issues' in checked ? checked.issues : checked)).not.toContain(api_key);
    }
  });

  it('leaves scores as they are with the managers rate_limited and remote; verl’s limit of one call at a time holds', () => {
    for (const name of ['rate_limited', 'remote'])
      expect(rewardManagerOf(recipe({ reward_manager: { name } }))).toBe('naive');
    const limited = recipe({ ...own, reward_manager: { name: 'rate_limited' }, endpoint: { max_rpm: 30 } });
    expect(runIssues(limited)).toEqual([]);
    expect(endpointSettings(limited)).toEqual({
      limits: { concurrent: 1, rpm: 30 },
      tokensPerRequest: 2000,
      retries: 8,
      timeoutMs: 300_000,
    });
  });
});
