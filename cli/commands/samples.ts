/** `petrel samples <run>`: prompts, completions and rewards of an iteration or a validation. */
import { join } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, integerOption, word } from '../options.ts';
import { counted } from '../../core/quantities.ts';
import { findRun } from '../../api/runs/find.ts';
import type { FoundRun } from '../../api/runs/find.ts';
import { noSuchIteration, trainingSamples, validationSamples } from '../../api/runs/samples.ts';
import type { SamplePorts, SampleView } from '../../api/runs/samples.ts';
import { samplesText } from '../runs/samples-text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const wanted = integerOption(input, 'iteration', 0);
  const limit = flag(input, 'all') ? Number.POSITIVE_INFINITY : (integerOption(input, 'limit', 1) ?? 8);
  const draw = integerOption(input, 'prompt', 0);
  const found = await findRun(word(input, 0), context);
  const ports: SamplePorts = { log: found.log, cache: join(context.home, 'cache') };
  const all = await (flag(input, 'validation')
    ? ofValidation(found, wanted, ports)
    : batchOf(found, wanted).then((batch) => trainingSamples(batch, ports)));
  const chosen = draw === undefined ? all : all.filter((sample) => sample.draw === draw);
  if (draw !== undefined && chosen.length === 0)
    throw noSuchIteration('draw', draw, [...new Set(all.map((sample) => sample.draw))]);
  const shown = chosen.slice(0, limit);
  printer.data(shown, () => samplesText(shown, printer));
  if (!printer.json) printer.notice(summary(found, chosen, shown.length, flag(input, 'validation')));
  return undefined;
}

/** The newest committed batch may have no update yet. */
async function batchOf({ log }: FoundRun, wanted: number | undefined): Promise<BatchRecord> {
  const head = await log.head();
  const pending = head?.pending?.record.decision === 'train' ? head.pending.record : undefined;
  const newest = pending?.iteration ?? head?.position ?? 0;
  const k = wanted ?? newest;
  const first = await log.first();
  if (wanted === undefined && newest <= first)
    throw new TerminalError('NotFound', 'no samples were trained on yet', {
      hint: `what the run does, or why it paused: petrel status ${log.runId}`,
    });
  if (k <= first || k > newest)
    throw noSuchIteration(
      'iteration',
      wanted,
      Array.from({ length: newest - first }, (_, i) => first + i + 1),
    );
  return pending?.iteration === k ? pending : (await log.iteration(k)).batch.record;
}

async function ofValidation({ log }: FoundRun, wanted: number | undefined, ports: SamplePorts): Promise<SampleView[]> {
  const evaluations = await log.evaluations();
  const chosen = wanted === undefined ? evaluations.at(-1) : evaluations.find(({ iteration }) => iteration === wanted);
  if (chosen === undefined)
    throw noSuchIteration(
      'validation of policy version',
      wanted,
      evaluations.map(({ iteration }) => iteration),
    );
  return validationSamples(chosen, ports);
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
