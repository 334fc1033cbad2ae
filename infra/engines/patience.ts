/** How long the processes of an engine may be without a sign of progress. */
import { InvalidInputError } from '../../core/errors.ts';

export const patienceVariable = 'PETREL_ENGINE_PATIENCE';

/** Seconds; undefined: the engine's own. Throws InvalidInputError for what is no number above 0. */
export function enginePatience(env: NodeJS.ProcessEnv = process.env): number | undefined {
  const text = env[patienceVariable];
  if (text === undefined || text === '') return undefined;
  const seconds = Number(text);
  if (seconds > 0 && Number.isFinite(seconds)) return seconds;
  throw new InvalidInputError(`${patienceVariable}: a number of seconds above 0 was expected, got ${text}`, {
    where: patienceVariable,
    hint: `unset ${patienceVariable}`,
  });
}
