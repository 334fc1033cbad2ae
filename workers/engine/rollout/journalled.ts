/** Samples that continue from the journal of a job, and write their progress to it. */
import type {
  Completion,
  Generation,
  GenerationSettings,
  SampleRequest,
  Sampling,
  Watcher,
} from '../generation/generation.ts';
import type { JobContext } from '../job/context.ts';
import { JournalWriter } from './journal-writer.ts';
import { readPrefixes } from './prefixes.ts';
import type { Prefixes } from './prefixes.ts';

/** A sample of a job. */
export type WantedSample = Pick<SampleRequest, 'prompt' | 'draw' | 'sample'>;

export interface JournalledSamples<Wanted extends WantedSample> {
  readonly samples: readonly Wanted[];
  readonly settings: GenerationSettings;
  /** Digest of the weights that sample them. */
  readonly weights: string;
  /** Number of tokens that the model knows. */
  readonly vocab: number;
  /** Engine and number format of this worker. */
  readonly arithmetic: string;
  /** Receives samples that have ended before the job. */
  readonly onEnded?: (ended: readonly (readonly [Wanted, Completion])[]) => void;
}

/** Operational metrics of a rollout job: core/metrics.ts. */
const counted = {
  samples: 'rollout/resumed_samples',
  tokens: 'rollout/resumed_tokens',
  decoded: 'rollout/decoded_tokens',
} as const;

/** The whole samples, in the given order. */
export async function journalled<Wanted extends WantedSample>(
  work: JournalledSamples<Wanted>,
  context: JobContext,
  generation: Pick<Generation, 'sample' | 'leave'>,
): Promise<Completion[]> {
  const { samples, settings, weights, vocab, arithmetic, onEnded } = work;
  const identity = { runId: context.runId, jobId: context.jobId, weights, arithmetic };
  const prefixes = readPrefixes(context.journal.entries, { ...settings, samples, identity, vocab });
  const writer = new JournalWriter(identity, context.journal);
  const leave = context.journal.onLost(() => writer.startOver());
  const total = samples.length * settings.maxNewTokens;
  const wantedOf = new Map<Completion, Wanted>();
  let done = 0;
  let decoded = 0;
  const watcher: Watcher = {
    onTokens: (count) => {
      decoded += count;
      context.progress((done += count), total, 'generating');
      writer.tick(count);
    },
    onEnded: (ended) =>
      onEnded?.(
        ended.flatMap((completion) => {
          const wanted = wantedOf.get(completion);
          return wanted === undefined ? [] : [[wanted, completion] as const];
        }),
      ),
  };
  try {
    const begun: Sampling[] = [];
    for (const wanted of samples) {
      const { prompt, draw, sample } = wanted;
      const prefix = prefixes.of(draw, sample);
      const sampling = generation.sample({ prompt, draw, sample, turn: 0, settings, prefix }, watcher);
      wantedOf.set(sampling.completion, wanted);
      begun.push(sampling);
    }
    const completions = begun.map(({ completion }) => completion);
    writer.begin([...wantedOf].map(([run, { draw, sample }]) => ({ run, draw, sample })));
    done = sayResumed(completions, prefixes, context);
    const whole = completions.filter(({ stopReason }) => stopReason !== 0);
    if (whole.length > 0) watcher.onEnded?.(whole);
    await Promise.all(begun.map(({ ended }) => ended));
    return completions;
  } catch (error) {
    writer.flush(); // the next worker of the job continues from here
    await generation.leave(watcher, error instanceof Error ? error : new Error(String(error)));
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
