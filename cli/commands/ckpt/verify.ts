/** `petrel ckpt verify <run> [iteration]`: exit 1 when anything is damaged. */
import { errorToJson } from '../../../core/errors.ts';
import type { PetrelError } from '../../../core/errors.ts';
import {
  findLogHole,
  findRun,
  retentionFloor,
  verifyBatches,
  verifyCheckpoints,
  verifyInputs,
} from '../../../api/index.ts';
import type { InputVerdict, IterationVerdict } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { EXIT, type ExitCode } from '../../exit-codes.ts';
import { word } from '../../options.ts';
import type { Printer } from '../../printer/printer.ts';
import { counted, showBytes } from '../../../core/quantities.ts';
import { renderTable } from '../../printer/table.ts';
import { iterationWord } from './iteration-word.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const iteration = iterationWord(input);
  const { runId, log } = await findRun(word(input, 0), context);
  const say = (text: string) => (printer.json ? undefined : printer.notice(text));
  const checkpoints = await verifyCheckpoints(log, iteration, say);
  // The best checkpoint may be older than what retention keeps; the batches after it are gone.
  const floor = await retentionFloor(log);
  const oldest = iteration ?? checkpoints.find((one) => one.iteration >= floor)?.iteration ?? 0;
  const batches = await verifyBatches(log, Math.max(oldest, floor), say);
  const inputs = await verifyInputs({ log, say });
  const hole = errorOrNone(await findLogHole(log));
  const damaged = [...checkpoints, ...batches, ...inputs].filter(({ ok }) => !ok).length + (hole === undefined ? 0 : 1);
  printer.data(
    { runId, ok: damaged === 0, checkpoints, batches, inputs, ...(hole === undefined ? {} : { hole }) },
    () =>
      [
        text(checkpoints, batches, inputs, damaged, printer),
        ...(hole === undefined ? [] : [`${hole.message}\n${hole.hint ?? ''}`]),
      ].join('\n'),
  );
  return damaged === 0 ? EXIT.ok : EXIT.internal;
}

const errorOrNone = (error: PetrelError | undefined) => (error === undefined ? undefined : errorToJson(error));

/** Checkpoints one by one; batches only where something is wrong. */
function text(
  checkpoints: readonly IterationVerdict[],
  batches: readonly IterationVerdict[],
  inputs: readonly InputVerdict[],
  damaged: number,
  printer: Printer,
): string {
  const verdicts = [
    ...checkpoints.map((verdict) => ({ what: `checkpoint ${verdict.iteration}`, ...verdict })),
    ...batches.filter(({ ok }) => !ok).map((verdict) => ({ what: `batch ${verdict.iteration}`, ...verdict })),
    ...inputs,
  ];
  const table = renderTable(verdicts, [
    { head: 'what', value: ({ what }) => what },
    { head: 'verdict', value: ({ ok }) => (ok ? 'ok' : printer.style('red', 'DAMAGED')) },
    { head: 'read', value: ({ bytes }) => showBytes(bytes), right: true },
    { head: 'why', value: ({ problem }) => problem },
  ]);
  const sum =
    damaged === 0
      ? 'all is well'
      : `${damaged} damaged: recovery passes over a damaged checkpoint, and needs every batch after the one it uses`;
  return `${table}\n\n${counted(checkpoints.length, 'checkpoint')}, ${counted(batches.length, 'batch', 'batches')}: ${sum}`;
}
