/** `petrel ckpt export <run> [iteration or best] --out DIR [--dtype] [--merged]`. */
import { actorOf } from '../../../core/records/components.ts';
import { resolve } from 'node:path';
import { exportPolicy, findRun } from '../../../api/index.ts';
import type { ExportDtype } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { flag, textOption, word } from '../../options.ts';
import { iterationWord } from './iteration-word.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, cwd } = context;
  const iteration = input.words[1] === 'best' ? 'best' : iterationWord(input);
  const folder = resolve(cwd, textOption(input, 'out') ?? '.');
  const { runId, log } = await findRun(word(input, 0), context);
  const { manifest, dtype, isAdapter } = await exportPolicy(
    log,
    { folder, iteration, dtype: dtypeOption(input), merged: flag(input, 'merged') },
    context,
  );
  const answer = {
    runId,
    iteration: manifest.iteration,
    digest: actorOf(manifest.components).weightsDigest,
    dtype,
    ...(isAdapter && { adapter: true }),
    folder,
  };
  printer.data(answer, () => folder);
  if (!printer.json)
    printer.notice(
      isAdapter
        ? `the adapter after iteration ${manifest.iteration} as a folder of peft, ${dtype}; --merged writes a whole model`
        : `the policy after iteration ${manifest.iteration} as a Hugging Face folder, ${dtype}`,
    );
  return undefined;
}

/** commander has checked it against the choices. */
function dtypeOption(input: CommandInput): ExportDtype {
  const text = textOption(input, 'dtype');
  return text === 'fp32' || text === 'bf16' ? text : 'auto';
}
