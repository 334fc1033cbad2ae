/**
 * `env:NAME` in a scorer's settings is replaced by the variable's value where the scorer runs, so that records never
 * contain it.
 */
import { UnfitError } from '../../core/errors.ts';

const reference = /^env:([A-Za-z_][A-Za-z0-9_]*)$/;

/** The same settings with every reference replaced, at any depth. Throws UnfitError `MissingSecret`. */
export function withSecrets(
  settings: Readonly<Record<string, unknown>>,
  env: NodeJS.ProcessEnv,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, resolved(value, env)]));
}

/** Values of the variables that the settings name. Missing ones are left out; `withSecrets` refuses them. */
export function namedVariables(settings: unknown, env: NodeJS.ProcessEnv): Record<string, string> {
  const found = secretNames(settings).map((name) => [name, env[name]] as const);
  return Object.fromEntries(found.filter((entry): entry is readonly [string, string] => entry[1] !== undefined));
}

/** Names of the variables that the settings refer to. */
export function secretNames(settings: unknown): string[] {
  const names = valuesOf(settings).flatMap((value) =>
    typeof value === 'string' ? (reference.exec(value)?.[1] ?? []) : secretNames(value),
  );
  return [...new Set(names)];
}

/** The variable's value. Throws UnfitError `MissingSecret` when it is not set: another worker may have it. */
export function secretOf(name: string, env: NodeJS.ProcessEnv): string {
  const secret = env[name];
  if (secret !== undefined && secret !== '') return secret;
  throw new UnfitError('MissingSecret', `the recipe names env:${name}, and this worker has no variable ${name}`, {
    hint: `set ${name}, then petrel down and petrel up, because workers keep the environment they were started with`,
  });
}

function resolved(value: unknown, env: NodeJS.ProcessEnv): unknown {
  if (Array.isArray(value)) return value.map((item) => resolved(item, env));
  if (isRecord(value)) return withSecrets(value, env);
  const name = typeof value === 'string' ? reference.exec(value)?.[1] : undefined;
  return name === undefined ? value : secretOf(name, env);
}

function valuesOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.values(value) : [];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
