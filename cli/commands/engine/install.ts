import { installEngine } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { EXIT, type ExitCode } from '../../exit-codes.ts';
import { textOption, word } from '../../options.ts';
import { packagesOf } from './packages-of.ts';

/** `petrel engine install`: a Python environment, from pinned and hashed wheels. */
export async function run(input: CommandInput, { printer, home }: CommandContext): Promise<ExitCode> {
  const engine = word(input, 0);
  const python = textOption(input, 'python');
  const device = textOption(input, 'device') ?? 'cpu';
  const onLine = (line: string) => printer.notice(line);
  const installed = await installEngine({ home, engine, device, ...(python && { python }), onLine });
  const { environment, folder, known } = installed;
  printer.data(installed, () =>
    [
      `${engine} ${known ? 'was installed already' : 'is installed'}: ${packagesOf(environment)}`,
      `in ${folder}, on ${environment.versions.device}`,
    ].join('\n'),
  );
  return EXIT.ok;
}
