/** `petrel fleet token`. */
import { basename, resolve } from 'node:path';
import { createFleetToken, writeJoinProgram } from '../../../api/index.ts';
import { parseDuration } from '../../../core/schedules/duration.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const file = await createFleetToken(context, {
    pool: textOption(input, 'pool') ?? '',
    roles: (textOption(input, 'roles') ?? '').split(','),
    engines: textOption(input, 'engines')?.split(','),
    ttlMs: parseDuration(textOption(input, 'ttl') ?? '', '--ttl'),
    store: textOption(input, 'store'),
  });
  const program = textOption(input, 'program');
  if (program === undefined) {
    context.printer.data(file, () => JSON.stringify(file, null, 2));
    context.printer.notice(`valid until ${file.expires}; on the other machine: petrel worker --join FILE`);
    return undefined;
  }
  writeJoinProgram(resolve(context.cwd, program), file);
  context.printer.data(
    { program, expires: file.expires },
    () => `wrote ${program}, which is valid until ${file.expires}`,
  );
  context.printer.notice(`on the other machine, which needs only Node: node ${basename(program)}`);
  return undefined;
}
