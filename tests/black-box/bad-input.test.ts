/**
 * Recipes and rows that cannot be trained on: each is refused at the earliest moment at which it can be known, with a
 * code, with what was expected and what came, and with what to type next. `parse`: by the recipe alone. `start`: by the
 * model, the rows and the scorer, before a run exists. `sample`: the run pauses; no response without a score counts as
 * 0.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = new PetrelUser();
afterAll(() => user.remove());

type Words = readonly string[];
type Sections = Readonly<Record<string, object | string | boolean>>;

interface Case {
  readonly what: string;
  /** Overrides of the recipe. */
  readonly with: Words;
  readonly recipe?: Sections;
  readonly files?: Readonly<Record<string, string>>;
  readonly says: RegExp;
  readonly hint: RegExp;
  /** Overrides that the hint names, or means: with them the recipe can be run. */
  readonly mended?: Words;
}

const correction = 'algorithm.rollout_correction';
const loss = 'actor.policy_loss.loss_mode';
const estimator = 'algorithm.adv_estimator';
const limit = 'actor.ppo_max_token_len_per_gpu';

/** `plan` ends with 2: the recipe alone is wrong. */
const atParse: readonly Case[] = [
  {
    what: 'a group of one under grpo_passk',
    with: [`${estimator}=grpo_passk`, 'rollout.n=1'],
    says: /^rollout\.n: grpo_passk compares the responses of one prompt, so it needs 2 or more of them$/,
    hint: /^rollout\.n=8 is usual$/,
    mended: ['rollout.n=8'],
  },
  {
    what: 'no critic for gae',
    with: [`${estimator}=gae`, 'critic.enable=false'],
    says: /^critic\.enable: algorithm\.adv_estimator gae needs the values of a critic$/,
    hint: /leave critic\.enable out, or choose an estimator without a critic: grpo/,
    mended: [`${estimator}=grpo`],
  },
  {
    what: 'no dro_beta for dro',
    with: [`${loss}=dro`],
    says: /^actor\.policy_loss\.dro_beta: the loss dro needs the weight of its squared log-ratio$/,
    hint: /actor\.policy_loss\.dro_beta=0\.1$/,
    mended: ['actor.policy_loss.dro_beta=0.1'],
  },
  {
    what: 'a sequence longer than the token budget',
    with: [`${limit}=10`],
    says: /one sequence may have 14 tokens \(data\.max_prompt_length \+ data\.max_response_length\), more than one forward pass takes \(10\)/,
    hint: /^use actor\.ppo_max_token_len_per_gpu=14 or more, or shorter sequences$/,
    mended: [`${limit}=14`],
  },
  {
    what: 'a group longer than the token budget, under a loss that reads groups',
    with: [`${loss}=gvpo`, `${limit}=20`],
    says: /gvpo reads the 4 responses to a prompt at once: they may have 32 tokens together, more than one forward pass takes \(20\)/,
    hint: /^use actor\.ppo_max_token_len_per_gpu=32 or more/,
    mended: [`${limit}=32`],
  },
  {
    what: 'two bounds with another sign between them',
    with: [`${correction}.rollout_rs=token_k1`, `${correction}.rollout_rs_threshold=0.5-2`],
    says: /rollout_rs_threshold: expected a positive number or "low_high", got "0\.5-2"$/,
    hint: /^for example 2 or "0\.5_5"$/,
    mended: [`${correction}.rollout_rs_threshold="0.5_5"`],
  },
  {
    what: 'bounds in the wrong order',
    with: [`${correction}.rollout_is=token`, `${correction}.rollout_is_threshold="2_0.5"`],
    says: /rollout_is_threshold: the lower bound 2 is above the upper bound 0\.5$/,
    hint: /^write the smaller number first: "0\.5_2"$/,
    mended: [`${correction}.rollout_is_threshold="0.5_2"`],
  },
  {
    what: 'a threshold below 0',
    with: [`${correction}.rollout_is=token`, `${correction}.rollout_is_threshold=-1`],
    says: /rollout_is_threshold: a bound must be greater than 0, got -1$/,
    hint: /^for example 2/,
    mended: [`${correction}.rollout_is_threshold=2`],
  },
  {
    what: 'a rejection without its threshold',
    with: [`${correction}.rollout_rs=token_k1`],
    says: /rollout_rs: needs rollout_rs_threshold$/,
    hint: /"0\.5_2" for k1/,
    mended: [`${correction}.rollout_rs_threshold="0.5_2"`],
  },
  {
    what: 'a lower bound where there is none',
    with: [`${correction}.rollout_rs=seq_max_k2`, `${correction}.rollout_rs_threshold="0.5_2"`],
    says: /seq_max_k2 has only an upper bound, got "0\.5_2"/,
    hint: /^give the upper one alone: 2$/,
    mended: [`${correction}.rollout_rs_threshold=2`],
  },
  {
    what: 'a bound of a ratio below 1',
    with: [`${correction}.rollout_rs=token_k1`, `${correction}.rollout_rs_threshold=0.5`],
    says: /one bound u of k1 means \[1\/u, u\], so it must be at least 1, got 0\.5/,
    hint: /^for the same bounds write 2, or give both: "0\.5_2"$/,
    mended: [`${correction}.rollout_rs_threshold="0.5_2"`],
  },
  {
    what: 'another number of thresholds than of statistics',
    with: [`${correction}.rollout_rs="token_k1,seq_max_k2,token_k3"`, `${correction}.rollout_rs_threshold="2,1"`],
    says: /rollout_rs_threshold: has 2 thresholds for 3 statistics$/,
    hint: /^give one for all, or one for each, separated by commas: "2,1,2"$/,
    mended: [`${correction}.rollout_rs_threshold="2,1,2"`],
  },
  {
    what: 'a statistic that does not exist',
    with: [`${correction}.rollout_rs=token_k9`, `${correction}.rollout_rs_threshold=2`],
    says: /rollout_rs: unknown statistic "token_k9"/,
    hint: /one of token_k1, token_k2/,
    mended: [`${correction}.rollout_rs=token_k1`],
  },
  {
    what: 'gdpo without names of scores',
    with: [`${estimator}=gdpo`],
    says: /^algorithm\.gdpo_reward_keys: gdpo needs the names of the scores that it adds up$/,
    hint: /the names of numbers that the scorer returns/,
    mended: ['algorithm.gdpo_reward_keys=[acc]'],
  },
  {
    what: 'an estimator whose advantages a loss cannot use',
    with: [`${estimator}=gae`, `${loss}=gvpo`],
    says: /gvpo compares log-ratios within a group, so the advantages must be relative to the group, too$/,
    hint: /^use algorithm\.adv_estimator=grpo, or another loss: actor\.policy_loss\.loss_mode=vanilla$/,
    mended: [`${loss}=vanilla`],
  },
  {
    what: 'an estimator that makes what a loss does not read',
    with: [`${estimator}=gae`, `${loss}=online_dpo`, 'rollout.n=2'],
    says: /online_dpo compares scores and reads no advantages/,
    hint: /^use algorithm\.adv_estimator=grpo/,
    mended: [`${estimator}=grpo`],
  },
  {
    what: 'fewer waves than a batch needs',
    with: [
      'algorithm.filter_groups.enable=true',
      'algorithm.filter_groups.max_num_gen_batches=1',
      'data.gen_batch_size=4',
    ],
    says: /1 times 4 prompts are fewer than the 8 of a batch/,
    hint: /^expected integer >= 2, got 1$/,
    mended: ['algorithm.filter_groups.max_num_gen_batches=2'],
  },
];

const row = (more: object): string => {
  const good = { prompt: '1+1=', data_source: 'exact', reward_model: { ground_truth: '2' } };
  return [good, good, good, good, { ...good, ...more }].map((one) => `${JSON.stringify(one)}\n`).join('');
};
const scoredBy = (file: string): Sections => ({ reward: { scorer: null, custom_reward_function: { path: file } } });
/** `format` is there for the right response alone, which is the one that a start tries. */
const sometimes = `export function computeScore({ solutionStr, groundTruth }) {
  return solutionStr === groundTruth ? { score: 1, acc: 1, format: 1 } : { score: 0, acc: 0 };
}
`;

/** `plan` ends with 8: a check has failed. */
const atStart: readonly Case[] = [
  {
    what: 'a row without a ground truth',
    with: [],
    files: { 'train.jsonl': row({ reward_model: undefined }) },
    says: /train\.jsonl, row 5: expected reward_model\.ground_truth; reward_model is missing$/,
    hint: /^give each row what its scorer compares with: "reward_model": \{"ground_truth": "4"\}/,
  },
  {
    what: 'a row with an empty ground truth, for a scorer that compares texts',
    with: [],
    files: { 'train.jsonl': row({ reward_model: { ground_truth: null } }) },
    says: /train\.jsonl, row 5: exact expects a text as ground truth, got none$/,
    hint: /^set the row's reward_model\.ground_truth, or leave the row out$/,
  },
  {
    what: 'a row with an empty ground truth, for a scorer in Python',
    with: ['reward.scorer=math_verify'],
    files: { 'train.jsonl': row({ reward_model: { ground_truth: null } }) },
    says: /row 5: math_verify expects a text as ground truth, got none$/,
    hint: /^set the row's reward_model\.ground_truth/,
  },
  {
    what: 'a ground truth that no response can equal',
    with: ['reward.scorer=last_integer'],
    files: { 'train.jsonl': row({ reward_model: { ground_truth: 'two' } }) },
    says: /row 5: last_integer expects a text with an integer as ground truth, got "two"$/,
    hint: /^set the row's reward_model\.ground_truth/,
  },
  {
    what: 'an unknown data_source',
    with: ['reward.scorer=null'],
    files: { 'train.jsonl': row({ data_source: 'unheard/of' }) },
    says: /row 5: no scorer for data_source "unheard\/of"$/,
    hint: /set reward\.scorer \(gsm8k, .*\) or reward\.custom_reward_function\.path/,
    mended: ['reward.scorer=exact'],
  },
  {
    what: 'an unknown data_source among the validation rows',
    with: ['reward.scorer=null', 'data.val_files=./val.jsonl'],
    files: { 'train.jsonl': row({}), 'val.jsonl': row({ data_source: 'unheard/of' }) },
    says: /val\.jsonl, row 5: no scorer for data_source "unheard\/of"$/,
    hint: /set reward\.scorer/,
    mended: ['reward.scorer=exact'],
  },
  {
    what: 'a component that the scorer does not return',
    with: [`${estimator}=gdpo`, 'algorithm.gdpo_reward_keys=[acc,format]'],
    says: /the scorer returned no number "format" \(algorithm\.gdpo_reward_keys\); it returned score, acc$/,
    hint: /Change the row or reward\.scorer/,
    mended: ['algorithm.gdpo_reward_keys=[acc]'],
  },
  {
    what: 'a metric of dynamic sampling that the scorer does not return',
    with: ['algorithm.filter_groups.enable=true', 'algorithm.filter_groups.metric=accuracy'],
    says: /^the scorer returned no number "accuracy" \(algorithm\.filter_groups\.metric\); it returned score, acc$/,
    hint: /^choose a number that it returns: algorithm\.filter_groups\.metric=score$/,
    mended: ['algorithm.filter_groups.metric=score'],
  },
  {
    what: 'a metric of the curriculum that the scorer does not return',
    with: ['data.curriculum.enable=true', 'data.curriculum.metric=accuracy'],
    says: /^the scorer returned no number "accuracy" \(data\.curriculum\.metric\); it returned score, acc$/,
    hint: /^choose a number that it returns: data\.curriculum\.metric=score$/,
    mended: ['data.curriculum.metric=score'],
  },
  {
    what: 'a prompt that is longer than the limit',
    with: ['data.max_prompt_length=3'],
    files: { 'train.jsonl': row({}) },
    says: /row 1: the prompt has \d+ tokens/,
    hint: /data\.max_prompt_length|filter_overlong_prompts/,
    mended: ['data.max_prompt_length=8'],
  },
];

interface PausedCase extends Case {
  readonly code: string;
  /** Standard output or error of `run --wait` contains it: what to type next. */
  readonly next: RegExp;
}

/** `run --wait` ends with 104, the exit code of a pause. */
const atSample: readonly PausedCase[] = [
  {
    what: 'all groups filtered max_num_gen_batches times',
    with: ['algorithm.filter_groups.enable=true', 'algorithm.filter_groups.max_num_gen_batches=2'],
    recipe: scoredBy('./one.mjs'),
    files: { 'one.mjs': 'export const computeScore = () => 1;\n' },
    code: 'TooFewGroups',
    says: /^iteration 1: 0 of 8 groups have samples that differ in score, after sampling 2 times$/,
    hint: /petrel resume \S+ algorithm\.filter_groups\.max_num_gen_batches=4 --accept ; or train on prompts/,
    next: /resume \S+ algorithm\.filter_groups\.max_num_gen_batches=4 --accept$/m,
  },
  {
    what: 'a component that some results lack',
    with: [`${estimator}=gdpo`, 'algorithm.gdpo_reward_keys=[acc,format]'],
    recipe: scoredBy('./sometimes.mjs'),
    files: { 'sometimes.mjs': sometimes },
    code: 'TooManyFailedSamples',
    says: /^\d+ of 32 samples of iteration 1 could not be scored; .* the scorer returned no number "format"/,
    hint: /petrel resume \S+ reward\.custom_reward_function\.path=\.\/sometimes\.mjs --accept/,
    next: /resume \S+ reward\.custom_reward_function\.path=\.\/sometimes\.mjs --accept$/m,
  },
  {
    what: 'a metric of dynamic sampling that some results lack',
    with: ['algorithm.filter_groups.enable=true', 'algorithm.filter_groups.metric=format'],
    recipe: scoredBy('./sometimes.mjs'),
    files: { 'sometimes.mjs': sometimes },
    code: 'MissingColumn',
    says: /^the scorer returned no number "format" for sample \d+$/,
    hint: /petrel resume \S+ algorithm\.filter_groups\.metric=score --accept/,
    next: /resume \S+ algorithm\.filter_groups\.metric=score --accept$/m,
  },
];

interface ErrorOf {
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
}

interface Plan {
  readonly checks: readonly { readonly status: string; readonly detail: string; readonly hint?: string }[];
}

function prepare({ recipe = {}, files = {} }: Case): void {
  for (const name of readdirSync(user.folder)) rmSync(join(user.folder, name), { recursive: true });
  user.recipe('recipe.yaml', recipe);
  for (const [name, text] of Object.entries(files)) user.write(name, text);
}

/**
 * The error of `run`, with the code, the text and the hint of the table; the place of the recipe is left out of the
 * text.
 */
async function refused(one: Case): Promise<void> {
  const ran = await user.petrel('run', 'recipe.yaml', ...one.with, '--detach', '--json');
  const { error } = ran.json<ErrorOf>();
  const text = error.message
    .split('\n')[0]
    ?.replace(/^(?:override \S+?=.*?|recipe\.yaml(?::\d+)*): (?=[a-z_]+[.:])/, '');
  expect({ exit: ran.code, code: error.code }).toEqual({ exit: 2, code: 'InvalidInput' });
  expect(text).toMatch(one.says);
  expect(error.hint ?? error.message).toMatch(multiline(one.hint));
}

/** A hint of a recipe's error is the last line of its text, indented. */
const multiline = ({ source }: RegExp): RegExp => new RegExp(source.replace(/^\^/, '^\\s*'), 'm');

async function isMended({ with: wrong, mended = [] }: Case): Promise<void> {
  const planned = await user.petrel('plan', 'recipe.yaml', ...wrong, ...mended);
  expect(planned.code, planned.out + planned.err).toBe(0);
}

describe('is refused by the recipe alone:', () => {
  it.each(atParse)('$what', async (one) => {
    prepare(one);
    const planned = await user.petrelWith({ env: { COLUMNS: '80' } }, 'plan', 'recipe.yaml', ...one.with);
    expect(planned.code, planned.out + planned.err).toBe(2);
    expect(planned.err).toMatch(multiline(one.hint));
    await refused(one);
  });
});

describe('is refused at the start:', () => {
  it.each(atStart)('$what', async (one) => {
    prepare(one);
    const planned = await user.petrel('plan', 'recipe.yaml', ...one.with, '--json');
    expect(planned.code, planned.out + planned.err).toBe(8);
    const failed = planned.json<Plan>().checks.filter(({ status }) => status === 'failed');
    expect(failed).toMatchObject([{ detail: expect.stringMatching(one.says), hint: expect.stringMatching(one.hint) }]);
    await refused(one);
  });
});

describe('is accepted with what the hint says:', { tags: ['long'] }, () => {
  it.each([...atParse, ...atStart].filter(({ mended }) => mended !== undefined))('$what', async (one) => {
    prepare(one);
    await isMended(one);
  });
});

describe('pauses the run:', { tags: ['long'] }, () => {
  it.each(atSample)('$what', async (one) => {
    prepare(one);
    const ran = await user.petrel('run', 'recipe.yaml', ...one.with, '--wait', '--json');
    const { runId, state, reason } = ran.json<{ runId: string; state: string; reason: ErrorOf['error'] }>();
    expect({ exit: ran.code, state, code: reason.code }).toEqual({ exit: 104, state: 'paused', code: one.code });
    expect(reason.message).toMatch(one.says);
    expect(reason.hint).toMatch(one.hint);
    const shown = await user.petrel('status', runId);
    expect(shown.out).toMatch(one.next);
    const cancelled = await user.petrel('cancel', runId, '--yes');
    expect(cancelled.code, cancelled.err).toBe(0);
  });

  it('and the command that is shown continues it', async () => {
    const one = atSample[2] as PausedCase;
    prepare(one);
    const ran = await user.petrel('run', 'recipe.yaml', ...one.with, '--wait', '--json');
    const { runId, reason } = ran.json<{ runId: string; reason: ErrorOf['error'] }>();
    const words = /petrel (resume \S+ \S+ --accept)/.exec(reason.hint ?? '')?.[1]?.split(' ') ?? [];
    const resumed = await user.petrel(...words, '--wait', '--json');
    expect(resumed.code, resumed.out + resumed.err).toBe(0);
    expect(resumed.json<{ runId: string; state: string }>()).toMatchObject({ runId, state: 'completed' });
  });
});

describe('a name of TRL is answered with the key of petrel:', () => {
  const names: readonly (readonly [string, RegExp])[] = [
    ['num_generations=8', /rollout\.n here$/],
    ['beta=0.04', /actor\.kl_loss_coef here: with actor\.use_kl_loss: true; for DPO algorithm\.dpo_beta$/],
    ['epsilon=0.2', /actor\.clip_ratio here$/],
    ['epsilon_high=0.28', /actor\.clip_ratio_high here$/],
    ['max_completion_length=64', /data\.max_response_length here$/],
    ['per_device_train_batch_size=8', /data\.train_batch_size here: petrel counts the prompts of all devices/],
    ['learning_rate=1e-6', /actor\.optim\.lr here$/],
    ['loss_type=dapo', /actor\.loss_agg_mode here: bnpo and dapo: token-mean; grpo: seq-mean-token-mean/],
    ['scale_rewards=false', /algorithm\.norm_adv_by_std_in_grpo here/],
    ['steps_per_generation=4', /actor\.ppo_mini_batch_size here: the prompts of one optimiser step/],
    ['num_iterations=2', /actor\.ppo_epochs here$/],
    ['reward_weights=[1,2]', /algorithm\.gdpo_reward_weights here: with algorithm\.adv_estimator: gdpo/],
    ['temperature=0.7', /belongs under rollout$/],
  ];
  it.each(names)('%s', async (override, hint) => {
    user.recipe();
    const planned = await user.petrel('plan', 'recipe.yaml', override, '--json');
    const { error } = planned.json<ErrorOf>();
    expect({ exit: planned.code, code: error.code }).toEqual({ exit: 2, code: 'InvalidInput' });
    expect(error.message).toMatch(new RegExp(hint.source, 'm'));
  });
});
