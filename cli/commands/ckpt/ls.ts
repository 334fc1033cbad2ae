/** `petrel ckpt ls <run>`. */
import { findRun, listCheckpoints, retentionFloor } from '../../../api/index.ts';
import type { CheckpointRow } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { word } from '../../options.ts';
import { showBytes, showNumber } from '../../../core/quantities.ts';
import { renderTable } from '../../printer/table.ts';
import type { Column } from '../../printer/table.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const { runId, log } = await findRun(word(input, 0), context);
  const rows = await listCheckpoints(log);
  printer.data(rows, () =>
    rows.length === 0
      ? 'no checkpoints yet'
      : renderTable(rows, [
          { head: 'iteration', value: ({ iteration }) => iteration },
          { head: 'weights', value: ({ digest }) => digest.slice(0, 16) },
          { head: 'state', value: ({ stateDigest }) => stateDigest.slice(0, 16) },
          { head: 'size', value: ({ bytes }) => showBytes(bytes), right: true },
          {
            head: 'shards',
            value: ({ shards, complete }) => (complete ? shards : printer.style('red', `${shards}, not all there`)),
          },
          ...(rows.some(({ best }) => best !== undefined) ? [bestColumn] : []),
        ]),
  );
  const floor = await retentionFloor(log);
  if (floor > 0 && !printer.json)
    printer.notice(`\nretention keeps what follows iteration ${floor}; older checkpoints are removed`);
  if (rows.length > 0 && !printer.json)
    printer.notice(`\nnext:\n  petrel ckpt verify ${runId}\n  petrel ckpt export ${runId} --out ./trained`);
  return undefined;
}

const bestColumn: Column<CheckpointRow> = {
  head: 'best',
  value: ({ best }) => best && `${best.metric} ${showNumber(best.value)}`,
};
