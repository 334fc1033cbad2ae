import type { GenerateRequest, TrainerEngine } from '../../../core/ports.ts';
import { createGenerator } from '../../../native/generate.ts';
import type { GoldenCase, Outcome } from '../types.ts';
import { packed, type Ragged } from './sequences.ts';

/**
 * Cases of kind `greedy`: all prompts are decoded together. The trainer computes the margins of the generated tokens.
 */
export async function greedy(trainer: TrainerEngine, { inputs }: GoldenCase): Promise<{ got: Outcome }> {
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

function decode(trainer: TrainerEngine, requests: readonly GenerateRequest[]) {
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

/** Best log-prob minus second, per step: the sequence once per token of the vocabulary, each scoring that token everywhere. */
function margins(trainer: TrainerEngine, prompt: readonly number[], response: readonly number[]): number[] {
  const sequence = [...prompt, ...response];
  const copies = Array.from({ length: trainer.config.vocab }, () => sequence);
  const steps = response.map((_, t) => prompt.length - 1 + t);
  const { logProbs_P } = trainer.forward(
    {
      ...packed(copies),
      positions_P: Int32Array.from(copies.flatMap((_, copy) => steps.map((at) => copy * sequence.length + at))),
      targets_P: Int32Array.from(copies.flatMap((_, token) => steps.map(() => token))),
    },
    { temperature: 1, entropy: false, keep: false },
  );
  return steps.map((_, t) => {
    const [best = NaN, second = NaN] = Float32Array.from(
      copies,
      (_, copy) => logProbs_P[copy * steps.length + t] ?? NaN,
    )
      .sort()
      .reverse();
    return best - second;
  });
}
