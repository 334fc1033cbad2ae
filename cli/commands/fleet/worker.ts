/** `petrel worker --join FILE`. */
import { joinFleet } from '../../../api/fleet/join.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { integerOption, textOption } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, leave);
  try {
    await joinFleet(context, {
      file: textOption(input, 'join') ?? '',
      threads: integerOption(input, 'threads', 1, 1_024),
      signal: leaving.signal,
    });
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, leave);
  }
  return undefined;
}
