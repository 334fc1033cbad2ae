import type { CommandContext, CommandInput } from '../command.ts';
import { doctorChecks } from '../../api/index.ts';
import type { DoctorLine } from '../../api/index.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import type { Printer } from '../printer/printer.ts';
import { renderFields } from '../printer/table.ts';

/** `petrel doctor`: one line per check; every red one says what to do. Exit 8 when one is red. */
export async function run(_input: CommandInput, { printer, home }: CommandContext): Promise<ExitCode> {
  const lines: DoctorLine[] = [];
  for (const { name, check } of doctorChecks(home)) lines.push({ name, ...(await check()) });
  printer.data(lines, () => table(lines, printer));
  return lines.some(({ status }) => status === 'red') ? EXIT.precheckFailed : EXIT.ok;
}

function table(lines: readonly DoctorLine[], printer: Printer): string {
  const words = { green: 'ok', yellow: 'note', red: 'FAILED' } as const;
  const nameWidth = Math.max(...lines.map(({ name }) => name.length));
  return renderFields(
    [
      [`${'CHECK'.padEnd(nameWidth)}  RESULT`, 'DETAIL'],
      ...lines.map(
        ({ name, status, detail, fix }) =>
          [
            `${name.padEnd(nameWidth)}  ${printer.style(status, words[status])}`,
            fix === undefined ? detail : `${detail}; ${fix}`,
          ] as const,
      ),
    ],
    printer.stdout,
  );
}
