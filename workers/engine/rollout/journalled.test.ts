import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decoder, trainerOf } from '../../../native/testing/decoders.ts';
import { Generation } from '../generation/generation.ts';
import type { Completion, GenerationSettings } from '../generation/generation.ts';
import type { JobContext } from '../job/context.ts';
import { journalled } from './journalled.ts';
import { generatorWith } from '../engines/native/index.ts';
import { NativePolicy } from '../engines/native/policy.ts';
import { NativeSampler } from '../engines/native/sampler.ts';

const config = decoder();
const arithmetic = 'det-test';
const settings: GenerationSettings = {
  runId: 'run-1',
  sampling: { temperature: 1, topK: 20, topP: 1, minP: 0, repetitionPenalty: 1.1 },
  maxNewTokens: 60,
  stopTokens: Int32Array.of(4),
  seed: [1, 2],
  // Used as a stop string: a certain token directly after another.
  stopsAt: (tokens) => tokens.length > 1 && tokens.at(-1) === 11 && (tokens.at(-2) ?? 0) > 20,
};
const prompts = new Map([
  [40, Int32Array.of(5, 6, 7)],
  [41, Int32Array.of(9, 3, 3, 8, 2)],
]);
const wanted = [...prompts].flatMap(([draw, prompt]) =>
  Array.from({ length: 6 }, (_, sample) => ({ draw, sample, prompt })),
);
const samples = wanted.length;

let policy: NativePolicy;
beforeAll(() => void (policy = new NativePolicy(trainerOf(config, 3, { trainable: false }))));
afterAll(() => policy.close());

interface Attempt {
  readonly completions?: Completion[];
  readonly said: string[];
  readonly counts: Record<string, number>;
  /** The journal after the attempt. */
  readonly entries: string[];
}

/** One worker's attempt at the job, which ends when it has decoded this many tokens. */
async function attempt(
  entries: readonly string[],
  upTo = Number.POSITIVE_INFINITY,
  more: { arithmetic?: string; flush?: boolean; tickMs?: number } = {},
): Promise<Attempt> {
  const sampler = new NativeSampler(policy, generatorWith);
  await sampler.makeRoom({ maxSeqs: samples, maxModelLen: 80 });
  const generation = new Generation(Promise.resolve(sampler));
  const said: string[] = [];
  const counts: Record<string, number> = {};
  const written: string[] = [];
  let dead = false;
  let decoded = 0;
  const context = {
    runId: 'run',
    jobId: 'rollout-1',
    progress: (done: number) => {
      decoded = done;
      if (done >= upTo)
        setImmediate(() => {
          dead = more.flush !== true;
          void generation.interrupt();
        });
    },
    say: (text: string) => said.push(text),
    count: (name: string, value: number) => (counts[name] = value),
    journal: {
      entries,
      incarnation: String(entries.length),
      tickMs: more.tickMs ?? 5,
      now: () => decoded,
      publish: (text: string) => dead || written.push(text),
      onLost: () => () => {},
    },
  } as unknown as JobContext;
  const work = {
    samples: wanted,
    settings,
    weights: 'w',
    vocab: config.vocab,
    arithmetic: more.arithmetic ?? arithmetic,
  };
  const completions = await journalled(work, context, generation).catch(() => undefined);
  await generation.close();
  return { ...(completions && { completions }), said, counts, entries: [...entries, ...written] };
}

const tokensOf = (completions: readonly Completion[] | undefined) =>
  (completions ?? []).reduce((sum, { tokens }) => sum + tokens.length, 0);

describe('a job that continues from the journal', () => {
  it('has samples that end in every possible way, which the other tests need', async () => {
    const { completions = [] } = await attempt([]);
    expect(
      new Set(
        completions.map(({ tokens, stopReason }) =>
          tokens.at(-1) === 4 ? 'token' : stopReason === 1 ? 'string' : 'length',
        ),
      ),
    ).toEqual(new Set(['token', 'string', 'length']));
  });

  it.each([1, 40, 100, 150, 200, 300])(
    'gives the same samples, log-probs included, when its worker is killed after %i tokens',
    async (tokens) => {
      const undisturbed = await attempt([]);
      const killed = await attempt([], tokens);
      expect(killed.completions).toBeUndefined();
      const second = await attempt(killed.entries);
      expect(second.completions).toEqual(undisturbed.completions);
      const resumed = second.counts['rollout/resumed_tokens'] ?? 0;
      expect(resumed + (second.counts['rollout/decoded_tokens'] ?? 0)).toBe(tokensOf(undisturbed.completions));
      // A tick is 5 tokens here, and a decoding step makes up to one token per sample.
      expect(tokens - resumed).toBeLessThanOrEqual(5 + 2 * samples);
    },
  );

  it('decodes nothing twice when the earlier worker could write its last tokens', async () => {
    const undisturbed = await attempt([]);
    const left = await attempt([], 150, { flush: true });
    const second = await attempt(left.entries);
    expect(second.completions).toEqual(undisturbed.completions);
    expect((left.counts['rollout/decoded_tokens'] ?? 0) + (second.counts['rollout/decoded_tokens'] ?? 0)).toBe(
      tokensOf(undisturbed.completions),
    );
    expect(second.said).toEqual([
      `resumed 12 of 12 samples, ${left.counts['rollout/decoded_tokens']} tokens from the journal`,
    ]);
  });

  it('continues on several workers in turn', async () => {
    let entries: string[] = [];
    for (const upTo of [60, 120, 180, 240]) entries = (await attempt(entries, upTo)).entries;
    const last = await attempt(entries);
    expect(last.completions).toEqual((await attempt([])).completions);
    expect(last.said[0]).toMatch(/^resumed \d+ of 12 samples/);
  });

  it('decodes nothing when all of its samples are in the journal', async () => {
    const undisturbed = await attempt([], undefined, { tickMs: 0 });
    const second = await attempt(undisturbed.entries);
    expect(second.completions).toEqual(undisturbed.completions);
    expect(second.counts['rollout/decoded_tokens']).toBe(0);
  });

  it('starts from the first token, with a message, when the journal has another arithmetic', async () => {
    const killed = await attempt([], 200, { arithmetic: 'det-other', flush: true });
    const second = await attempt(killed.entries);
    expect(second.completions).toEqual((await attempt([])).completions);
    expect(second.counts['rollout/resumed_tokens']).toBe(0);
    expect(second.said).toEqual([expect.stringMatching(/^journal entries rejected: \d+ of other arithmetic$/)]);
  });
});
