/** `petrel ckpt export <run> [iteration] --out DIR [--dtype]`. */
import { join, resolve } from 'node:path';
import { petrelHome } from '../../../infra/home.ts';
import { pinPosition } from '../../../infra/retention/entries.ts';
import { exportCheckpoint } from '../../checkpoints/export.ts';
import type { ExportDtype } from '../../checkpoints/export.ts';
import { chooseCheckpoint } from '../../checkpoints/list.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption, word } from '../../options.ts';
import { findRun } from '../../runs/find.ts';
import { iterationWord } from './iteration-word.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, env, cwd } = context;
  const iteration = iterationWord(input);
  const folder = resolve(cwd, textOption(input, 'out') ?? '.');
  const { runId, log } = await findRun(word(input, 0), context);
  const { record: manifest } = await chooseCheckpoint(log, iteration);
  const cache = join(petrelHome(env), 'cache');
  const unpin = await pinPosition(
    log,
    { position: manifest.iteration, why: 'an export', forMs: exportMs },
    () => new Date(),
  );
  const dtype = await exportCheckpoint({ log, manifest, folder, dtype: dtypeOption(input), cache }).finally(unpin);
  const answer = { runId, iteration: manifest.iteration, digest: manifest.weightsDigest, dtype, folder };
  printer.data(answer, () => folder);
  if (!printer.json)
    printer.notice(`the policy after iteration ${manifest.iteration} as a Hugging Face folder, ${dtype}`);
  return undefined;
}

/** One that takes longer has died. */
const exportMs = 6 * 3_600_000;

/** commander has checked it against the choices. */
function dtypeOption(input: CommandInput): ExportDtype {
  const text = textOption(input, 'dtype');
  return text === 'fp32' || text === 'bf16' ? text : 'auto';
}
