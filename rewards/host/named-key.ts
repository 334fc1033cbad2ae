/** The key of a service, as a recipe names it: `env:NAME`. */
import { redactor } from './redact.ts';
import { namedVariables, secretOf } from './secrets.ts';

export interface NamedKey {
  /** Absent: the service wants none. */
  readonly key?: string;
  /** Replaces the key by `[env:NAME]`. */
  readonly clean: (text: string) => string;
}

/** Throws UnfitError `MissingSecret` where the variable is not set. */
export function namedKey(apiKey: string | undefined, env: NodeJS.ProcessEnv): NamedKey {
  const clean = redactor(namedVariables({ apiKey }, env));
  return apiKey === undefined ? { clean } : { key: secretOf(apiKey.slice('env:'.length), env), clean };
}
