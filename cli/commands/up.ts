import { petrelHome } from '../../infra/home.ts';
import { defaultPools, ensureStack, type StackInfo, type WorkerPool } from '../../infra/stack/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { integerOption } from '../options.ts';
import { renderFields, renderTable } from '../printer/table.ts';

/** `petrel up`. Idempotent: a stack that runs is left alone. */
export async function run(input: CommandInput, { printer, env }: CommandContext): Promise<undefined> {
  const workers = integerOption(input, 'workers', 0, 64);
  const stack = await ensureStack({
    home: petrelHome(env),
    ...(workers === undefined ? {} : { workers: poolsOf(workers) }),
    onProgress: (line) => printer.notice(line),
  });
  printer.data(publicPart(stack), () => stackText(stack));
  printer.notice('it stays up; petrel down stops it');
  return undefined;
}

function poolsOf(count: number): readonly WorkerPool[] {
  return defaultPools.map((pool) => ({ ...pool, count }));
}

/** Without the token. */
function publicPart({ temporal, nats, pools, children }: StackInfo): object {
  return { temporal, nats: { url: nats.url }, pools, children };
}

function stackText({ temporal, nats, children }: StackInfo): string {
  const servers = renderFields([
    ['Temporal', `${temporal.address}  (http://127.0.0.1:${temporal.uiPort})`],
    ['NATS', nats.url],
  ]);
  return `${servers}\n\n${childTable(children)}`;
}

/** The processes of the stack. */
export function childTable(children: StackInfo['children']): string {
  return renderTable(children, [
    { head: 'process', value: ({ name }) => name },
    { head: 'state', value: ({ state }) => state },
    { head: 'pid', value: ({ pid }) => pid },
    { head: 'restarts', value: ({ restarts }) => restarts },
    { head: 'last exit', value: ({ lastExit }) => lastExit, shrink: true },
  ]);
}
