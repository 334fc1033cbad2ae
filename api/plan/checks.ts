/** What `plan` looks at besides the recipe: are the model and the rows there, and fit for use? */
import { InvalidInputError, PetrelError } from '../../core/errors.ts';
import type { Recipe } from '../../core/recipe/index.ts';

export interface PlanCheck {
  readonly name: string;
  /** later: it can only be known when the run starts. */
  readonly status: 'ok' | 'failed' | 'later';
  readonly detail: string;
  readonly hint?: string;
}

/** What one look found: a line for people, and what the arithmetic needs. */
export interface Finding {
  readonly detail: string;
  readonly later?: boolean;
  /** Rows that are used, of the training data. */
  readonly rows?: number;
}

/** One look. Throws InvalidInputError for what is wrong. */
export interface Probe {
  readonly name: string;
  readonly look: (recipe: Recipe) => Promise<Finding | undefined>;
}

export interface CheckResult {
  readonly checks: readonly PlanCheck[];
  readonly rows: number | undefined;
}

/** Runs every probe; what is wrong becomes a line, what is unexpected is thrown. */
export async function runProbes(probes: readonly Probe[], recipe: Recipe): Promise<CheckResult> {
  const checks: PlanCheck[] = [];
  let rows: number | undefined;
  for (const { name, look } of probes) {
    const finding = await look(recipe).catch(asFailure);
    if (finding === undefined) continue;
    if (finding instanceof PetrelError) checks.push(failed(name, finding));
    else checks.push({ name, status: finding.later === true ? 'later' : 'ok', detail: finding.detail });
    if (!(finding instanceof PetrelError)) rows ??= finding.rows;
  }
  return { checks, rows };
}

function asFailure(error: unknown): InvalidInputError {
  if (error instanceof InvalidInputError) return error;
  throw error;
}

function failed(name: string, error: PetrelError): PlanCheck {
  const detail =
    error.where === undefined || error.message.includes(error.where)
      ? error.message
      : `${error.message} (${error.where})`;
  return { name, status: 'failed', detail, ...(error.hint === undefined ? {} : { hint: error.hint }) };
}
