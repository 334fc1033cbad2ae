/** `petrel samples <run>`: prompts, completions and rewards of an iteration or a validation. */
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, integerOption, word } from '../options.ts';
import { counted } from '../../core/quantities.ts';
import { findRun, readSamples } from '../../api/index.ts';
import type { FoundRun, SampleView } from '../../api/index.ts';
import { samplesText } from '../runs/samples-text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const wanted = integerOption(input, 'iteration', 0);
  const limit = flag(input, 'all') ? Number.POSITIVE_INFINITY : (integerOption(input, 'limit', 1) ?? 8);
  const draw = integerOption(input, 'prompt', 0);
  const found = await findRun(word(input, 0), context);
  const validation = flag(input, 'validation');
  const chosen = await readSamples(found, { iteration: wanted, validation, draw }, context);
  const shown = chosen.slice(0, limit);
  printer.data(shown, () => samplesText(shown, printer));
  if (!printer.json) printer.notice(summary(found, chosen, shown.length, validation));
  return undefined;
}

function summary({ runId }: FoundRun, chosen: readonly SampleView[], shown: number, validation: boolean): string {
  const rewards = chosen.map(({ reward }) => reward).filter((reward) => reward !== null);
  const mean =
    rewards.length === 0
      ? ''
      : `, mean reward ${(rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length).toFixed(3)}`;
  const what = validation
    ? `validation of policy version ${chosen[0]?.iteration ?? 0}`
    : `iteration ${chosen[0]?.iteration ?? 0}`;
  const which = validation ? ['--validation'] : [];
  const same = [runId, ...which, `--iteration ${chosen[0]?.iteration ?? 0}`].join(' ');
  const more = shown < chosen.length ? `; more: petrel samples ${same} --limit ${chosen.length}` : '';
  return `\n${what}: ${shown} of ${counted(chosen.length, 'sample')}${mean}${more}`;
}
