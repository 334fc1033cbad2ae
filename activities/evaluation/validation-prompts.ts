/** The prompts of a validation with what the scorer said of their responses, and the metrics that follow from them. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../core/at.ts';
import type { KnownOdds, Vote } from '../../core/rl/majority-at-k.ts';
import { promptStatistics, validationMetrics, validationStatistics } from '../../core/rl/validation-metrics.ts';
import type { PromptSamples, PromptStatistics } from '../../core/rl/validation-metrics.ts';
import { drawsIn } from '../../core/wire/score-table.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';

type Column = readonly (number | null)[];

export interface ValidationPrompt {
  /** Data source of its row; verl's `unknown` where the row or an older table has none. */
  readonly source: string;
  /** One per response; null: the scorer failed. */
  readonly scores: Column;
  /** What else the scorer returned, `acc` among it. A response without a value has null. */
  readonly columns: Readonly<Record<string, Column>>;
  /** The answers of the responses (column `pred`). */
  readonly votes: readonly Vote[];
}

/** `n`: responses per prompt where the table does not say. A table holds whole prompts. */
export function promptsIn(table: ScoreTable, n: number): ValidationPrompt[] {
  const { scores, columns, texts = {}, sources } = table;
  const [texted, numbered] = [texts['pred'], columns['pred']];
  const prompts: ValidationPrompt[] = [];
  for (const [start, end] of drawsIn(table, n)) {
    const part = <T>(list: readonly T[]) => list.slice(start, end);
    const votes = part(scores).map((_, i): Vote => {
      const number = numbered === undefined ? null : at(numbered, start + i);
      const text = texted === undefined ? null : at(texted, start + i);
      return text ?? (number === null ? null : String(number));
    });
    const source = sources === undefined ? undefined : sources.names[at(sources.samples, start)];
    prompts.push({
      source: source === undefined || source === '' ? 'unknown' : source,
      scores: part(scores),
      columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, part(values)])),
      votes,
    });
  }
  return prompts;
}

/** Is each response right (column `acc`)? null where the scorer failed or did not say. */
export function accOf({ scores, columns }: ValidationPrompt): Column {
  return columns['acc'] ?? scores.map(() => null);
}

/** Did the scorer say of every response whether it is right? Failed ones do not count. */
export function isJudged(prompts: readonly ValidationPrompt[]): boolean {
  const scored = prompts.flatMap((prompt) => accOf(prompt).filter((_, i) => at(prompt.scores, i) !== null));
  return scored.length > 0 && scored.every((acc) => acc !== null);
}

/**
 * Computes the metrics of validation prompts, under verl's names. The event loop gets a turn after each prompt: a
 * majority of many answers takes a while.
 */
export async function metricsOf(prompts: readonly ValidationPrompt[]): Promise<Record<string, number>> {
  const known: KnownOdds = new Map();
  const statistics: PromptStatistics[] = [];
  // Where all sources together are an accuracy, so is one whose responses all failed.
  const all = isJudged(prompts);
  const core = new Map<string, 'acc' | 'reward'>();
  for (const source of new Set(prompts.map((prompt) => prompt.source))) {
    const ofSource = prompts.filter((prompt) => prompt.source === source);
    const judged = all || isJudged(ofSource);
    core.set(source, judged ? 'acc' : 'reward');
    const voted = ofSource.some(({ votes }) => votes.some((vote) => vote !== null));
    for (const prompt of ofSource) {
      statistics.push(promptStatistics(samplesOf(prompt, judged, voted), known));
      await nextTurn();
    }
  }
  return validationMetrics(validationStatistics(statistics), (source) => core.get(source) ?? 'reward');
}

/** A failed response counts as wrong: its score is 0, and so is its `acc` where that is what is measured. */
function samplesOf(prompt: ValidationPrompt, judged: boolean, voted: boolean): PromptSamples {
  const { source, scores, columns, votes } = prompt;
  const counted = (column: Column) => column.map((value) => value ?? 0);
  // The score has verl's name `reward`. A column of that name is shown with the samples only.
  const others = Object.entries(columns).filter(([name]) => name !== 'reward' && !(judged && name === 'acc'));
  return {
    source,
    values: {
      ...(judged && { acc: counted(accOf(prompt)) }),
      reward: counted(scores),
      ...Object.fromEntries(others.map(([name, values]) => [name.replaceAll('/', '_'), values])),
    },
    ...(voted && { votes }),
  };
}
