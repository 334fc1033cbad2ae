import { tryEngine } from '../../../api/index.ts';
import type { EngineTrial } from '../../../api/index.ts';
import { showBytes } from '../../../core/quantities.ts';
import { packagesOf } from './packages-of.ts';
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
  { head: 'twice', value: ({ repeats, finite }) => (finite ? (repeats ? 'same bits' : 'OTHER BITS') : 'NOT FINITE') },
  { head: 'trained tokens/s', value: ({ trainedPerSecond = '' }) => trainedPerSecond },
  { head: 'sampled tokens/s', value: ({ sampledPerSecond }) => sampledPerSecond },
];

function text(trial: EngineTrial): string {
  const { name, environment, computes } = trial;
  return [
    `${name}: ${packagesOf(environment)}`,
    devicesText(trial),
    renderTable(computes, columns),
    verdict(trial),
  ].join('\n');
}

/** GPUs of one model are one line. */
function devicesText({ devices, environment }: EngineTrial): string {
  const line = ({ name, memory }: EngineTrial['devices'][number]) => `${name}, ${showBytes(memory)}`;
  const count = (one: string) => devices.filter((device) => line(device) === one).length;
  const kinds = [...new Set(devices.map(line))].map((one) => (count(one) > 1 ? `${count(one)} of ${one} each` : one));
  const what = environment.device === 'cpu' ? 'processor' : 'GPUs';
  return `${what}: ${kinds.join('; ')}${devices.length > 1 ? '; the first was tried' : ''}`;
}

function verdict({ computes, trusted }: EngineTrial): string {
  const samples = computes.every(({ trainedPerSecond }) => trainedPerSecond === undefined);
  const what = samples ? 'the same samples' : 'a training step from the same state';
  const model = 'of a model of 5 million parameters';
  if (trusted) return `${what}, ${model}, repeated in every compute type: this engine may be trusted`;
  const failed = computes.filter(({ repeats, finite }) => !repeats || !finite).map(({ compute }) => compute);
  return computes.some(({ finite }) => !finite)
    ? `${what}, ${model}, gave values that are not numbers in ${failed.join(' and ')}: do not use this engine`
    : `${what}, ${model}, did not repeat in ${failed.join(' and ')}: do not promise its bits with deterministic: true`;
}
