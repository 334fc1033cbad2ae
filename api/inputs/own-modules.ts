/**
 * Losses and estimators of the user's own: read, compiled, loaded and tried before a run takes them. What is stored is
 * their JavaScript, by digest, so that resume, replay and fork run exactly this code on any machine.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import {
  InvalidRecipeError,
  ownModuleIssues,
  type OwnModuleKind,
  ownModuleKeys,
  ownModuleKinds,
  ownModulePath,
  type Recipe,
} from '../../core/recipe/index.ts';
import type { OwnModuleInput, RunInputs } from '../../core/records/schema.ts';
import type { GradientReport } from '../../core/rl/own/check.ts';
import { compileOwnModule } from '../../infra/own-modules/compile.ts';
import { OwnModule } from '../../infra/own-modules/own-module.ts';
import { sha256 } from '../../log/objects/digest.ts';

/** A module that has passed its check. */
export interface CheckedModule {
  readonly kind: OwnModuleKind;
  readonly input: OwnModuleInput;
  /** The module's JavaScript, which `input.module` names. */
  readonly code: Uint8Array;
  /** Report on the gradient of a loss. */
  readonly gradient?: GradientReport;
  /** Terms of a loss whose gradient is meant to differ from the derivative of their value. */
  readonly straightThrough?: string | true;
}

/** Checks the modules that the recipe names. Throws InvalidInputError. */
export async function checkedModules(recipe: Recipe): Promise<readonly CheckedModule[]> {
  const found: CheckedModule[] = [];
  for (const kind of ownModuleKinds) {
    const path = ownModulePath(recipe, kind);
    if (path !== undefined) found.push(await checkedModule(kind, path, recipe));
  }
  return found;
}

/** The inputs of the checked modules without a sampler, which says more when it sees the rows: sampler-start.ts. */
export const inputsOf = (modules: readonly CheckedModule[]): Partial<Pick<RunInputs, 'loss' | 'estimator'>> =>
  Object.fromEntries(modules.filter(({ kind }) => kind !== 'sampler').map(({ kind, input }) => [kind, input]));

/** Throws InvalidRecipeError when a module needs something that the recipe does not give. */
export function assertFits(
  recipe: Recipe,
  modules: Partial<Readonly<Record<OwnModuleKind, OwnModuleInput | undefined>>>,
): void {
  const issues = ownModuleIssues(recipe, modules);
  if (issues.length > 0) throw new InvalidRecipeError(issues);
}

/**
 * `path`: absolute. Throws InvalidInputError when the file cannot be read or loaded, when a result of it is wrong, and
 * when the gradient of a loss is not the derivative of its value.
 */
export async function checkedModule(kind: OwnModuleKind, path: string, recipe: Recipe): Promise<CheckedModule> {
  const fileName = basename(path);
  const code = await compileOwnModule(await readModule(kind, path), fileName);
  const module = await OwnModule.open({ kind, fileName, source: code });
  try {
    const { needs, deterministic, straightThrough } = module.facts;
    const input = { module: sha256(code), fileName, needs: [...needs], deterministic };
    assertFits(recipe, { [kind]: input });
    if (kind === 'sampler') return { kind, input, code };
    if (kind === 'estimator') {
      const { gamma, lam, norm_adv_by_std_in_grpo: normAdvByStdInGrpo } = recipe.algorithm;
      await module.checkEstimator({ gamma, lam, normAdvByStdInGrpo });
      return { kind, input, code };
    }
    const gradient = await module.checkLoss(settingsOf(recipe));
    const declared = straightThrough === undefined ? {} : { straightThrough };
    assertGradient(fileName, gradient, straightThrough);
    return { kind, input, code, gradient, ...declared };
  } finally {
    await module.close();
  }
}

function readModule(kind: OwnModuleKind, path: string): Promise<Uint8Array> {
  return readFile(path).catch((cause: unknown) => {
    throw new InvalidInputError(`${ownModuleKeys[kind]}: cannot read ${path}`, {
      hint: "a path in a recipe is relative to the recipe's folder, one on the command line to the folder that you are in",
      cause,
    });
  });
}

function settingsOf({ actor }: Recipe) {
  return {
    lossAggMode: actor.loss_agg_mode,
    clipRatio: actor.clip_ratio,
    clipRatioLow: actor.clip_ratio_low ?? undefined,
    clipRatioHigh: actor.clip_ratio_high ?? undefined,
    clipRatioC: actor.clip_ratio_c,
  };
}

/** Fewer compared tokens than this share would prove little. */
const leastCompared = 0.5;

function assertGradient(
  fileName: string,
  { tokens, kinks, disagreeing, largest }: GradientReport,
  straightThrough: string | true | undefined,
): void {
  const where = `./${fileName}`;
  if (tokens - kinks < leastCompared * tokens)
    throw new InvalidInputError(
      `${where}: its gradient could not be compared: the loss has a kink or a jump at ${kinks} of ${tokens} tokens`,
      { where, hint: 'a loss must be smooth nearly everywhere in logProb_T' },
    );
  if (disagreeing === 0 || straightThrough !== undefined) return;
  const { difference, batch, token, given, numeric } = largest;
  throw new InvalidInputError(
    `${where}: its gradient is not the derivative of its loss at ${disagreeing} of ${tokens - kinks} tokens. The largest difference is ${show(difference)}, at token ${token} of trial batch ${batch}: the module gives ${show(given)}, a finite difference ${show(numeric)} (of the loss times its valid tokens)`,
    {
      where,
      hint: 'correct the derivative; or read what has no gradient from the second argument; or declare straightThrough, if the difference is meant',
    },
  );
}

const show = (value: number): string => String(Number(value.toPrecision(3)));
