import { InvalidInputError } from '../errors.ts';

/** One error in a recipe. */
export interface RecipeIssue {
  /** Dotted path: `actor.optim.lr`, `data.train_files.0`; '' for the whole. */
  readonly path: string;
  readonly message: string;
  readonly expected?: string;
  readonly received?: string;
  /** The full path of the key that was probably intended. */
  readonly nearest?: string;
  readonly hint?: string;
  /** The value must not be shown anywhere, not even in a quoted source line. */
  readonly secret?: boolean;
}

/** A recipe that cannot be used; lists all its errors. */
export class InvalidRecipeError extends InvalidInputError {
  readonly issues: readonly RecipeIssue[];

  constructor(issues: readonly RecipeIssue[], where?: string) {
    const hint = issues.map(issueHint).find((text) => text !== undefined);
    super(issues.map(issueLine).join('\n'), {
      ...(hint === undefined ? {} : { hint }),
      ...(where === undefined ? {} : { where }),
    });
    this.issues = issues;
  }
}

/** `actor.optim.lr: expected a number, got "fast"`. */
export function issueLine(issue: RecipeIssue): string {
  return issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`;
}

export function issueHint(issue: RecipeIssue): string | undefined {
  if (issue.hint !== undefined) return issue.hint;
  if (issue.nearest !== undefined) return `did you mean ${issue.nearest}?`;
  const { expected, received, message } = issue;
  if (expected === undefined || message.includes('expected')) return undefined;
  return `expected ${expected}${received === undefined ? '' : `, got ${received}`}`;
}
