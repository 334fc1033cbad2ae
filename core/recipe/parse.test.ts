import { recipeKey, recipeSections } from './keys.ts';
import { TRL_KEYS } from './trl.ts';
import { describe, expect, it } from 'vitest';
import { checkRecipe, parseRecipe } from './parse.ts';
import { findSecrets } from './secrets.ts';
import type { RecipeIssue } from './issues.ts';

const minimal = { model: { path: './model' }, data: { train_files: 'train.jsonl' } };

function issues(input: unknown): readonly RecipeIssue[] {
  const result = checkRecipe(input);
  if (result.ok) throw new Error('expected issues');
  return result.issues;
}

function onlyIssue(input: unknown): RecipeIssue {
  const all = issues(input);
  expect(all).toHaveLength(1);
  return all[0] as RecipeIssue;
}

describe('parseRecipe', () => {
  it('fills in verl’s defaults, except where petrel differs', () => {
    const recipe = parseRecipe(minimal);
    expect(recipe.data.train_batch_size).toBe(1024);
    expect(recipe.actor).toMatchObject({
      ppo_mini_batch_size: 256,
      clip_ratio: 0.2,
      clip_ratio_c: 3,
      loss_agg_mode: 'token-mean',
    });
    expect(recipe.actor.optim).toMatchObject({ lr: 1e-6, betas: [0.9, 0.999], weight_decay: 0.01 });
    expect(recipe.algorithm.adv_estimator).toBe('grpo');
    expect(recipe.trainer.save_freq).toBe(10);
    expect(recipe.reward.max_failed_fraction).toBe(0.1);
  });

  it('takes verl’s SFT defaults with kind: sft, unless the recipe says otherwise', () => {
    const recipe = parseRecipe({ ...minimal, kind: 'sft' });
    expect([recipe.data.train_batch_size, recipe.trainer.total_epochs, recipe.actor.optim.lr]).toEqual([256, 4, 1e-5]);
    expect(parseRecipe({ ...minimal, kind: 'sft', trainer: { total_epochs: 2 } }).trainer.total_epochs).toBe(2);
  });

  it('treats an empty section in YAML like a missing one', () => {
    expect(parseRecipe({ ...minimal, actor: null })).toEqual(parseRecipe(minimal));
  });

  it('returns an immutable recipe', () => {
    const recipe = parseRecipe(minimal);
    expect(Object.isFrozen(recipe.actor.optim)).toBe(true);
  });

  it('lists all errors at once', () => {
    const paths = issues({ ...minimal, actor: { optim: { lr: 'fast' } }, rollout: { n: 0, temprature: 1 } }).map(
      ({ path }) => path,
    );
    expect(paths.sort()).toEqual(['actor.optim.lr', 'rollout.n', 'rollout.temprature']);
  });

  it('names a missing required key and explains it', () => {
    expect(onlyIssue({ data: { train_files: 'a' } })).toMatchObject({ path: 'model.path', message: 'is required' });
  });

  it('says what was expected and what came', () => {
    expect(onlyIssue({ ...minimal, rollout: { n: 2.5 } })).toMatchObject({
      path: 'rollout.n',
      message: 'expected integer >= 1, got 2.5',
      expected: 'integer >= 1',
      received: '2.5',
    });
    expect(onlyIssue({ ...minimal, trainer: { logger: ['consol'] } }).message).toMatch(
      /^expected one of console, .*, got \["consol"\]$/,
    );
  });

  it('refuses anything but a mapping', () => {
    expect(onlyIssue([1]).message).toBe('a recipe is a mapping of keys, got [1]');
  });
});

describe('an unknown key', () => {
  it.each(['constructor', '__proto__', 'toString', 'valueOf'])('that every object has is only unknown: %s', (name) => {
    const tree = Object.defineProperty({ model: {} }, name, { value: 1, enumerable: true });
    const result = checkRecipe(tree);
    const issue = result.ok ? undefined : result.issues.find(({ message }) => message.includes('unknown key'));
    expect(issue?.message).toBe(`unknown key "${name}"`);
    expect(issue?.hint ?? '').not.toContain('native code');
  });

  it('is one of at most fifty that are looked at', () => {
    const result = checkRecipe(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`own${i}`, i])));
    const unknown = result.ok ? [] : result.issues.filter(({ message }) => message.includes('unknown key'));
    expect(unknown).toHaveLength(51);
    expect(unknown.at(-1)?.message).toBe('and 19950 more unknown keys: this is no recipe');
  });

  it('gets the nearest sibling', () => {
    expect(onlyIssue({ ...minimal, actor: { clip_raito: 1 } })).toMatchObject({
      path: 'actor.clip_raito',
      nearest: 'actor.clip_ratio',
    });
    expect(onlyIssue({ ...minimal, atcor: {} })).toMatchObject({ nearest: 'actor' });
  });

  it('in the wrong section gets its right section', () => {
    expect(onlyIssue({ ...minimal, actor: { adv_estimator: 'grpo' } })).toMatchObject({
      nearest: 'algorithm.adv_estimator',
      hint: 'belongs under algorithm',
    });
    expect(onlyIssue({ ...minimal, actor: { adv_estimatr: 'grpo' } }).hint).toContain('belongs under algorithm');
  });

  it('of TRL gets petrel’s key for it, which exists', () => {
    expect(onlyIssue({ ...minimal, actor: { beta: 0.04 } })).toMatchObject({ nearest: 'actor.kl_loss_coef' });
    expect(onlyIssue({ ...minimal, kind: 'dpo', beta: 0.1 }).hint).toContain('for DPO algorithm.dpo_beta');
    expect(onlyIssue({ ...minimal, kind: 'dpo', label_smoothing: 0.1 }).nearest).toBe('algorithm.dpo_label_smoothing');
    expect(onlyIssue({ ...minimal, num_generations: 8 }).hint).toBe("TRL's num_generations is rollout.n here");
    expect(onlyIssue({ ...minimal, fsdp: 'full_shard' }).nearest).toBe('trainer.fsdp_size');
    expect(onlyIssue({ ...minimal, trainer: { n_gpus_per_node: 8 } }).hint).toBe(
      "verl's trainer.n_gpus_per_node is trainer.fsdp_size here",
    );
    expect(onlyIssue({ ...minimal, actor: { max_completion_length: 64 } }).nearest).toBe('data.max_response_length');
    expect(onlyIssue({ ...minimal, per_device_train_batch_size: 8 }).hint).toContain('prompts of all devices');
    const places = Object.values(TRL_KEYS).flatMap(({ petrel }) => (petrel === undefined ? [] : [petrel]));
    const isPlace = (path: string) =>
      recipeKey(path) !== undefined || recipeSections.some((section) => section.path === path);
    expect(places.filter((path) => !isPlace(path))).toEqual([]);
  });

  it('of TRL without a counterpart gets the reason', () => {
    expect(onlyIssue({ ...minimal, gradient_checkpointing: true }).hint).toContain('engine decides');
    expect(onlyIssue({ ...minimal, vllm_mode: 'colocate' }).hint).toContain('sets up vLLM by itself');
    expect(onlyIssue({ ...minimal, rpo_alpha: 0.1 }).hint).toContain('not built yet');
  });

  it('for the number of workers gets the fleet’s pools', () => {
    expect(onlyIssue({ ...minimal, fleet: { workers: 2 } }).hint).toContain('fleet.pools.local=');
  });

  it('of verl’s wrapper gets a hint without the wrapper', () => {
    expect(onlyIssue({ ...minimal, actor_rollout_ref: { rollout: { n: 8 } } }).hint).toContain('rollout.n');
  });

  it('of verl gets its new path, or the advice to remove it', () => {
    expect(onlyIssue({ ...minimal, rollout: { response_length: 3 } }).nearest).toBe('data.max_response_length');
    expect(onlyIssue({ ...minimal, rollout: { gpu_memory_utilization: 0.5 } }).hint).toContain('remove');
  });

  it('inside a value is refused too', () => {
    expect(onlyIssue({ ...minimal, fleet: { pools: { local: { roles: ['trainer'], worker: 1 } } } }).path).toBe(
      'fleet.pools.local.worker',
    );
  });

  it('with the name of a prototype’s member is unknown too', () => {
    expect(issues(JSON.parse('{"model":{"path":"m"},"data":{"train_files":"a"},"__proto__":{"x":1}}'))[0]?.path).toBe(
      '__proto__',
    );
    expect(onlyIssue({ ...minimal, constructor: 1 }).path).toBe('constructor');
  });
});

describe('a built-in name or a path', () => {
  const withLoss = (loss: string) => ({ ...minimal, actor: { policy_loss: { loss_mode: loss } } });

  it.each(['./my-loss.ts', '../a b/loss.mjs', '/srv/loss.js', '~/loss.mts'])('may be the path %s', (path) => {
    expect(parseRecipe(withLoss(path)).actor.policy_loss.loss_mode).toBe(path);
    expect(parseRecipe({ ...minimal, algorithm: { adv_estimator: path } }).algorithm.adv_estimator).toBe(path);
  });

  it('that is misspelled gets the nearest name', () => {
    expect(onlyIssue(withLoss('vanila'))).toMatchObject({
      path: 'actor.policy_loss.loss_mode',
      hint: 'did you mean vanilla?',
      message: expect.stringMatching(
        /^expected one of vanilla, .*, or the path of a module of your own .*, got "vanila"$/,
      ),
    });
    expect(onlyIssue({ ...minimal, algorithm: { adv_estimator: 'rlo' } }).hint).toBe('did you mean rloo?');
  });

  it.each(['my-loss.ts', './my-loss.py', './my-loss', 'losses/mine.ts'])(
    'refuses %s and says what a path looks like',
    (path) => {
      expect(onlyIssue(withLoss(path)).hint).toBe(
        'a path begins with ./, ../, / or ~/, and ends in .ts, .mts, .js or .mjs',
      );
    },
  );
});

describe('a secret', () => {
  const token = `hf_${'a'.repeat(30)}`;

  it('is refused without being repeated, and env:NAME is shown', () => {
    const issue = onlyIssue({ ...minimal, model: { path: token } });
    expect(issue).toMatchObject({ path: 'model.path', secret: true });
    expect(issue.hint).toContain('env:HF_TOKEN');
    expect(JSON.stringify(issue)).not.toContain(token);
  });

  it('of ModelScope is recognised in a name of ModelScope', () => {
    const token = `ms-${['01234567', '89ab', 'cdef', '0123', '456789abcdef'].join('-')}`;
    const name = 'modelscope:org/name@v2';
    expect(findSecrets({ model: { path: name } })).toEqual([]);
    expect(findSecrets({ model: { path: `${name}?token=${token}` } })).toMatchObject([
      { path: 'model.path', secret: true },
    ]);
  });

  it('is recognised by its name too, and a reference is not a secret', () => {
    expect(onlyIssue({ ...minimal, reward: { reward_kwargs: { api_key: 'x1' } } }).hint).toContain('env:API_KEY');
    expect(checkRecipe({ ...minimal, reward: { reward_kwargs: { api_key: 'env:JUDGE_KEY' } } }).ok).toBe(true);
  });
});
