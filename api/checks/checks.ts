/**
 * The checks of a recipe's files, model, scorer and store. `run` makes those of the list `startChecks` in order and
 * stops at the first refusal; `plan` makes all and shows each.
 */
import { errorToJson, PetrelError } from '../../core/errors.ts';
import type { RecipeInputs } from '../inputs/recipe-inputs.ts';

export interface PlanCheck {
  readonly name: string;
  /** later: it can only be known when the run starts. warning: it does not stop the run. */
  readonly status: 'ok' | 'warning' | 'failed' | 'later';
  readonly detail: string;
  /** The code of the error with which `run` would refuse. */
  readonly code?: string;
  readonly where?: string;
  readonly hint?: string;
}

/** What one check found: a line for people, and what the arithmetic needs. */
export interface Finding {
  readonly detail: string;
  readonly status?: 'ok' | 'warning' | 'later';
  /** Rows that are used, of the training data. */
  readonly rows?: number;
  /** Names of the built-in scorers of the rows. */
  readonly scorers?: readonly string[];
  /** false: what scores is not declared to give equal numbers everywhere. */
  readonly deterministic?: false;
}

/** One check. `look` throws a PetrelError when the recipe cannot be run; undefined: there is nothing to check. */
export interface Check {
  readonly name: string;
  readonly look: (inputs: RecipeInputs) => Promise<Finding | undefined>;
}

export interface CheckResult {
  readonly checks: readonly PlanCheck[];
  readonly rows: number | undefined;
  /** Names of the built-in scorers of all rows that were read. */
  readonly scorers: readonly string[];
  /** false: a check found something that scores and is not declared deterministic. */
  readonly deterministic: boolean;
}

/**
 * Makes every check. A refusal becomes one line, also when several checks meet it; an error that is no PetrelError is
 * thrown.
 */
export async function runChecks(checks: readonly Check[], inputs: RecipeInputs): Promise<CheckResult> {
  const made: PlanCheck[] = [];
  const refusals = new Set<PetrelError>();
  let rows: number | undefined;
  let deterministic = true;
  const scorers = new Set<string>();
  for (const { name, look } of checks) {
    const finding = await look(inputs).catch(asRefusal);
    if (finding === undefined) continue;
    if (!(finding instanceof PetrelError)) {
      made.push(found(name, finding));
      rows ??= finding.rows;
      deterministic &&= finding.deterministic !== false;
      for (const one of finding.scorers ?? []) scorers.add(one);
    } else if (!refusals.has(finding)) {
      made.push(failed(name, finding));
      refusals.add(finding);
    }
  }
  return { checks: made, rows, scorers: [...scorers], deterministic };
}

/** Makes the checks until one refuses. Throws its error. */
export async function assertChecks(checks: readonly Check[], inputs: RecipeInputs): Promise<void> {
  for (const { look } of checks) await look(inputs);
}

function asRefusal(error: unknown): PetrelError {
  if (error instanceof PetrelError) return error;
  throw error;
}

const found = (name: string, { status = 'ok', detail }: Finding): PlanCheck => ({ name, status, detail });

function failed(name: string, error: PetrelError): PlanCheck {
  const { message, ...rest } = errorToJson(error);
  return { name, status: 'failed', detail: message, ...rest };
}
