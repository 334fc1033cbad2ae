import { startStack } from '../../api/index.ts';
import type { StackInfo } from '../../api/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, integerOption, textOption } from '../options.ts';
import { renderFields, renderTable } from '../printer/table.ts';

/** `petrel up`. Idempotent: a stack that runs is left alone. */
export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const workers = integerOption(input, 'workers', 0, 64);
  const stack = await startStack(context, {
    workers,
    listen: textOption(input, 'listen'),
    takeOver: flag(input, 'takeOver'),
  });
  printer.data(publicPart(stack), () => stackText(stack));
  printer.notice('it keeps running; petrel down stops it');
  return undefined;
}

/** The facts of a stack without its secrets. */
function publicPart({ temporal, nats, pools, children }: StackInfo): object {
  return { temporal: { address: temporal.address }, nats: { url: nats.url }, pools, children };
}

function stackText({ temporal, nats, children }: StackInfo): string {
  const servers = renderFields([
    ['Temporal', temporal.address],
    ['NATS', nats.url],
  ]);
  return `${servers}\n\n${childTable(children)}`;
}

/** The processes of the stack. */
function childTable(children: StackInfo['children']): string {
  return renderTable(children, [
    { head: 'process', value: ({ name }) => name },
    { head: 'state', value: ({ state }) => state },
    { head: 'pid', value: ({ pid }) => pid },
    { head: 'restarts', value: ({ restarts }) => restarts },
    { head: 'last exit', value: ({ lastExit }) => lastExit, shrink: true },
  ]);
}
