import type { PackedBatch } from '../../../core/ports/policy.ts';
import type { GenerateRequest } from '../../../core/ports/sampler.ts';
import type { NativeTrainer } from '../../../native/index.ts';
import { createGenerator } from '../../../native/generate.ts';
import type { GoldenCase, Outcome } from '../types.ts';
import { packed, type Ragged } from './sequences.ts';

/**
 * Cases of kind `greedy`: all prompts are decoded together. The trainer computes the margins of the generated tokens.
 */
export async function greedy(trainer: NativeTrainer, { inputs }: GoldenCase): Promise<{ got: Outcome }> {
  const prompts = inputs['prompts'] as Ragged;
  const maxNewTokens = inputs['max_new_tokens'] as number;
  const stopTokens = Int32Array.from((inputs['stop'] as readonly number[] | undefined) ?? []);
  const { tokens, logprobs } = decode(
    trainer,
    prompts.map((prompt, i) => greedyRequest(prompt, i + 1, maxNewTokens, stopTokens)),
  );
  return { got: { tokens, logprobs, margins: prompts.map((prompt, i) => margins(trainer, prompt, tokens[i] ?? [])) } };
}

function greedyRequest(
  prompt: readonly number[],
  key: number,
  maxNewTokens: number,
  stopTokens: Int32Array,
): GenerateRequest {
  return {
    prompt: Int32Array.from(prompt),
    samples: [{ key, random: { seed: [0, 0], draw: 0, sample: 0, turn: 0 } }],
    sampling: { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens,
    stopTokens,
  };
}

function decode(trainer: NativeTrainer, requests: readonly GenerateRequest[]) {
  const longest = Math.max(...requests.map(({ prompt, maxNewTokens }) => prompt.length + maxNewTokens));
  const generator = createGenerator(trainer, { maxSeqs: requests.length, maxModelLen: longest });
  const tokens = requests.map((): number[] => []);
  const logprobs = requests.map((): number[] => []);
  for (const request of requests) generator.submit(request);
  while (generator.stats.live + generator.stats.waiting > 0) {
    const step = generator.step();
    step.keys.forEach((key, i) => {
      tokens[key - 1]?.push(step.tokens[i] ?? -1);
      logprobs[key - 1]?.push(step.logProbs[i] ?? NaN);
    });
  }
  generator.close();
  return { tokens, logprobs };
}

/** Best logit minus second, per step. */
function margins(trainer: NativeTrainer, prompt: readonly number[], response: readonly number[]): number[] {
  const steps = response.map((_, t) => prompt.length - 1 + t);
  const { targets_P: _, ...batch } = packed([[...prompt, ...response]]);
  return logitRows(trainer, { ...batch, positions_P: Int32Array.from(steps) }).map((row) => {
    const [best = NaN, second = NaN] = Float32Array.from(row).sort().reverse();
    return best - second;
  });
}

/** Rows of logits [vocab], one per position of the batch. */
export function logitRows(trainer: NativeTrainer, batch: PackedBatch): Float32Array[] {
  const { vocab } = trainer.spec;
  const { outputs } = trainer.forward(batch, { temperature: 1, wants: ['logits'], keep: false });
  return Array.from(batch.positions_P, (_, p) => outputs.logits.subarray(p * vocab, (p + 1) * vocab));
}
