/** `env:NAME` in a scorer's settings becomes the variable's value where the scorer runs: records never hold it. */
import { TerminalError } from '../../core/errors.ts';

const reference = /^env:([A-Za-z_][A-Za-z0-9_]*)$/;

/** The same settings with every reference replaced, however deep. Throws TerminalError `MissingSecret`. */
export function withSecrets(
  settings: Readonly<Record<string, unknown>>,
  env: NodeJS.ProcessEnv,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, resolved(value, env)]));
}

function resolved(value: unknown, env: NodeJS.ProcessEnv): unknown {
  if (Array.isArray(value)) return value.map((item) => resolved(item, env));
  if (typeof value === 'object' && value !== null) return withSecrets(value as Record<string, unknown>, env);
  const name = typeof value === 'string' ? reference.exec(value)?.[1] : undefined;
  if (name === undefined) return value;
  const secret = env[name];
  if (secret === undefined || secret === '') {
    throw new TerminalError(
      'MissingSecret',
      `reward.reward_kwargs names env:${name}, and this worker has no variable ${name}`,
      {
        hint: `Set ${name}, then petrel down and petrel up: workers keep the environment they were started with`,
      },
    );
  }
  return secret;
}
