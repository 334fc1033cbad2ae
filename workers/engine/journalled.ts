/** A generation that continues from the journal of its samples, and writes its progress to the journal. */
import type { RolloutInput } from '../../core/wire/jobs.ts';
import type { Completion, GenerationJob } from './generation.ts';
import type { JobContext } from './host.ts';
import { JournalWriter } from './journal-writer.ts';
import { readPrefixes } from './prefixes.ts';
import type { Prefixes } from './prefixes.ts';

export interface JournalledGeneration {
  readonly input: RolloutInput;
  readonly job: Omit<GenerationJob, 'prefixOf' | 'onBegin' | 'onTokens'>;
  readonly vocab: number;
  /** Engine and number format of this worker. */
  readonly arithmetic: string;
  /** Maximum number of tokens, for progress displays. */
  readonly total: number;
}

/** Operational metrics of a rollout job: core/metrics.ts. */
const counted = {
  samples: 'rollout/resumed_samples',
  tokens: 'rollout/resumed_tokens',
  decoded: 'rollout/decoded_tokens',
} as const;

export async function journalled(
  work: JournalledGeneration,
  context: JobContext,
  generate: (job: GenerationJob) => Promise<Completion[]>,
): Promise<Completion[]> {
  const { input, job, vocab, arithmetic, total } = work;
  const identity = { runId: context.runId, jobId: context.jobId, weights: input.weights, arithmetic };
  const prefixes = readPrefixes(context.journal.entries, { ...job, identity, vocab });
  const writer = new JournalWriter(identity, context.journal);
  const leave = context.journal.onLost(() => writer.startOver());
  let done = 0;
  let decoded = 0;
  try {
    return await generate({
      ...job,
      prefixOf: prefixes.of,
      onBegin: (completions) => {
        writer.begin(completions, job);
        done = sayResumed(completions, prefixes, context);
      },
      onTokens: (count) => {
        decoded += count;
        context.progress((done += count), total, 'generating');
        writer.tick(count);
      },
    });
  } catch (error) {
    writer.flush(); // the next worker of the job continues from here
    throw error;
  } finally {
    leave();
    context.count(counted.decoded, decoded);
  }
}

/** Number of tokens that need not be decoded again. */
function sayResumed(completions: readonly Completion[], { dropped }: Prefixes, context: JobContext): number {
  const resumed = completions.filter(({ tokens }) => tokens.length > 0);
  const tokens = resumed.reduce((sum, completion) => sum + completion.tokens.length, 0);
  if (resumed.length > 0)
    context.say(`resumed ${resumed.length} of ${completions.length} samples, ${tokens} tokens from the journal`);
  if (dropped.size > 0)
    context.say(`journal entries rejected: ${[...dropped].map(([doubt, count]) => `${count} ${doubt}`).join(', ')}`);
  context.count(counted.samples, resumed.length);
  context.count(counted.tokens, tokens);
  return tokens;
}
