/**
 * The scorer is loaded in a scorer process, from a copy that lies with its other files in a folder as a worker's copy
 * does, and scores the first row once, with the row's ground truth as the response.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ENDPOINT_SCORERS } from '../../core/endpoint.ts';
import { InvalidInputError, PetrelError } from '../../core/errors.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { showNumber } from '../../core/quantities.ts';
import { shownModule } from '../../core/scorer-hint.ts';
import { rewardComponentsOf, scorerSettings, scoresLists, type Recipe } from '../../core/recipe/index.ts';
import type { Row } from '../../models/dataset.ts';
import { hasNumber, withComponents } from '../../rewards/components.ts';
import { scorerPackages } from '../../rewards/host/scorer-packages.ts';
import { gatherScorer } from '../scorer-files/gather.ts';
import { writeScorer } from '../../rewards/scorer-files.ts';
import { createScorerHost } from '../../rewards/host/index.ts';
import type { ScoreOutcome, ScorerHost, ScorerSpec } from '../../rewards/host/index.ts';
import { namedVariables, secretNames, withSecrets } from '../../rewards/host/secrets.ts';
import { checkedRows } from '../inputs/rows.ts';
import { assertScorer, scorerLimits, scorerOfRow } from '../inputs/scorer-rules.ts';
import type { Check, Finding } from './checks.ts';
import type { InputPorts } from '../inputs/recipe-inputs.ts';

/** A scorer may ask a service by itself, and take its time: the start of a run does not wait for it longer. */
const longestTrialMs = 10_000;

export const scorerCheck: Check = {
  name: 'scorer',
  look: async ({ recipe, ports }) => {
    if (!samplesResponses(recipe.kind)) return undefined;
    const { scorer, custom_reward_function: custom } = recipe.reward;
    if (scorer === 'none' && custom.path === null) return undefined;
    if (custom.path === null && scorer !== null) assertScorer(recipe, scorer);
    if (custom.path === null && scorer !== null && ENDPOINT_SCORERS.includes(scorer))
      return { detail: `${scorer}: asks reward.endpoint about every response` };
    const whole = custom.path === null ? undefined : await gatherScorer(custom.path, custom.requirements);
    const missing = secretNames(recipe.reward.reward_kwargs).filter((name) => !ports.env[name]);
    if (missing.length > 0) return notHere(missing);
    const others = whole === undefined || whole.files.size === 0 ? '' : ` with ${whole.files.size} other files`;
    const what = custom.path === null ? (scorer ?? 'chosen by each row') : `${custom.name} of ${custom.path}${others}`;
    if (whole === undefined) return withHost({ type: 'builtin', name: scorer }, recipe, ports, what);
    const folder = await mkdtemp(join(tmpdir(), 'petrel-scorer-'));
    try {
      const copy = join(folder, 'scorer');
      const path = await writeScorer(copy, whole);
      const { requirements } = whole;
      const spec = {
        type: 'module',
        path,
        exportName: custom.name,
        lists: scoresLists(recipe),
        shownAs: shownModule(whole.fileName),
        sandbox: recipe.reward.sandbox,
        ...(whole.files.size > 0 && { folder: copy }),
        ...(requirements !== undefined && { packages: await scorerPackages(join(ports.home, 'cache'), requirements) }),
      } as const;
      return await withHost(spec, recipe, ports, what);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** A worker may have what this process has not. */
function notHere(missing: readonly string[]): Finding {
  const names = missing.join(', ');
  return { status: 'later', detail: `not tried: ${names} is not set here; the workers that score need it` };
}

async function withHost(spec: ScorerSpec, recipe: Recipe, { env }: InputPorts, what: string): Promise<Finding> {
  const { reward } = recipe;
  const host = createScorerHost(
    { ...spec, settings: withSecrets(scorerSettings(recipe), env), secrets: namedVariables(reward.reward_kwargs, env) },
    { ...scorerLimits(recipe), timeoutMs: Math.min(reward.timeout * 1000, longestTrialMs), concurrency: 1 },
  );
  try {
    await host.ready();
    if (reward.endpoint.url !== null)
      return { status: 'later', detail: `${what}: loaded; it may ask reward.endpoint, so it is not tried` };
    const row = await firstRow(recipe);
    return row === undefined ? { detail: what } : await trial(host, row, recipe, what);
  } finally {
    await host.close();
  }
}

async function trial(host: ScorerHost, row: Row, recipe: Recipe, what: string): Promise<Finding> {
  const { dataSource, groundTruth, extraInfo } = row;
  const { name, solutionStr } = trialResponse(row, recipe);
  const outcomes = await host.score([
    { dataSource, solutionStr, groundTruth, ...(extraInfo !== undefined && { extraInfo }) },
  ]);
  const [outcome] = withComponents(outcomes, rewardComponentsOf(recipe));
  if (outcome?.ok !== true) return refuse(outcome, name, recipe);
  assertColumns(outcome, recipe);
  const detail = `${what}: the ${name} of the first row scores ${showNumber(outcome.score)}`;
  const { timeout, sandbox_fusion: fusion } = recipe.reward;
  if (!isOfCode(row, recipe) || fusion.url !== null || timeout >= verlsSeconds) return { detail };
  return {
    status: 'warning',
    detail: `${detail}; programs have ${timeout} s for all tests, verl gives them up to ${verlsSeconds} s: reward.timeout=${verlsSeconds}`,
  };
}

/** Numbers of each result that choose the prompts to train on. Throws InvalidInputError when the scorer lacks one. */
function assertColumns(outcome: Extract<ScoreOutcome, { ok: true }>, { algorithm, data }: Recipe): void {
  const { filter_groups: filter } = algorithm;
  const read = [
    ...(filter.enable ? [{ path: 'algorithm.filter_groups.metric', name: filter.metric ?? 'score' }] : []),
    ...(data.curriculum.enable ? [{ path: 'data.curriculum.metric', name: data.curriculum.metric ?? 'score' }] : []),
  ];
  for (const { path, name } of read) {
    if (hasNumber(outcome, name)) continue;
    const has = ['score', ...Object.keys(outcome.columns)].join(', ');
    throw new InvalidInputError(`the scorer returned no number ${JSON.stringify(name)} (${path}); it returned ${has}`, {
      hint: `choose a number that it returns: ${path}=score`,
    });
  }
}

/** 6 s for all tests together, then 11 s for each of ten, and some for starting them. */
const verlsSeconds = 120;

function isOfCode(row: Row, recipe: Recipe): boolean {
  return recipe.reward.custom_reward_function.path === null && scorerOfRow(recipe, row) === 'code';
}

/**
 * A response that should be right. GSM8K's scorer wants the number after "####", which its ground truth lacks and its
 * answer has. Tests do not tell a program that passes them.
 */
function trialResponse(row: Row, recipe: Recipe): { name: string; solutionStr: string } {
  const { groundTruth, extraInfo } = row;
  const { answer } = (extraInfo ?? {}) as { readonly answer?: unknown };
  if (recipe.data.format === 'gsm8k' && typeof answer === 'string') return { name: 'answer', solutionStr: answer };
  if (isOfCode(row, recipe)) return { name: 'empty program', solutionStr: '' };
  const solutionStr = typeof groundTruth === 'string' ? groundTruth : JSON.stringify(groundTruth);
  return { name: 'ground truth', solutionStr };
}

/** An error of the scorer's own refuses the recipe, unless it allows every sample to fail. A slow answer does not. */
function refuse(outcome: Extract<ScoreOutcome, { ok: false }> | undefined, name: string, { reward }: Recipe): Finding {
  const detail = `the scorer fails on the first row, with its ${name} as the response: ${outcome?.reason ?? 'no score'}`;
  const isError = outcome?.code === 'threw' || outcome?.code === 'bad-result';
  if (!isError || reward.max_failed_fraction >= 1) return { status: 'warning', detail };
  const { path } = reward.custom_reward_function;
  throw new InvalidInputError(detail, {
    ...(path !== null && { where: path }),
    hint: `${path === null ? 'Change the row or reward.scorer' : `Fix ${path}`}; reward.max_failed_fraction=1 starts the run all the same`,
  });
}

/** undefined when there is none that can be read: the check of the rows says why. */
async function firstRow(recipe: Recipe): Promise<Row | undefined> {
  try {
    for await (const row of checkedRows(recipe, 'train')) return row;
  } catch (error) {
    if (!(error instanceof PetrelError)) throw error;
  }
  return undefined;
}
