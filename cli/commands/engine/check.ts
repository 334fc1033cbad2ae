import { tryEngine } from '../../../api/index.ts';
import type { EngineTrial } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { EXIT, type ExitCode } from '../../exit-codes.ts';
import { textOption, word } from '../../options.ts';
import { renderTable } from '../../printer/table.ts';
import type { Column } from '../../printer/table.ts';

type Row = EngineTrial['computes'][number];

/** `petrel engine check`: one line for each compute type. */
export async function run(input: CommandInput, { printer, home }: CommandContext): Promise<ExitCode> {
  const trial = await tryEngine(home, word(input, 0), textOption(input, 'device') ?? 'cpu');
  printer.data(trial, () => text(trial));
  return trial.trusted ? EXIT.ok : EXIT.precheckFailed;
}

const columns: readonly Column<Row>[] = [
  { head: 'compute', value: ({ compute }) => compute },
  { head: 'bits', value: ({ repeats, finite }) => (finite ? (repeats ? 'repeat' : 'DIFFER') : 'NOT FINITE') },
  { head: 'trained/s', value: ({ trainedPerSecond }) => trainedPerSecond },
  { head: 'sampled/s', value: ({ sampledPerSecond }) => sampledPerSecond },
];

function text({ name, environment, memory, computes, trusted }: EngineTrial): string {
  const { torch, transformers, device } = environment.versions;
  const gib = memory > 0 ? `, ${Math.round(memory / 2 ** 30)} GiB` : '';
  return [
    `${name}: torch ${torch}, transformers ${transformers}, ${device}${gib}`,
    renderTable(computes, columns),
    `tokens, of a model of 4 layers; ${trusted ? 'it repeats its bits' : 'do not use it with deterministic: true'}`,
  ].join('\n');
}
