import type { OwningSampler, Sampler, GenerateRequest } from '../../../core/ports/sampler.ts';
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import type { GoldenCase, Outcome } from '../types.ts';
import { logitRows } from './models-objectives.ts';
import { packed, type Ragged } from './sequences.ts';

/**
 * Cases of kind `greedy`: all prompts are decoded together. The model computes the margins of the generated tokens.
 */
export async function greedy(
  model: PolicyEngine,
  sampler: Sampler | OwningSampler,
  { inputs }: GoldenCase,
): Promise<{ got: Outcome }> {
  const prompts = inputs['prompts'] as Ragged;
  const maxNewTokens = inputs['max_new_tokens'] as number;
  const stopTokens = Int32Array.from((inputs['stop'] as readonly number[] | undefined) ?? []);
  const { tokens, logprobs } = await decode(
    sampler,
    prompts.map((prompt, i) => greedyRequest(prompt, i + 1, maxNewTokens, stopTokens)),
  );
  const margins = [];
  for (const [i, prompt] of prompts.entries()) margins.push(await marginsOf(model, prompt, tokens[i] ?? []));
  return { got: { tokens, logprobs, margins } };
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

async function decode(sampler: Sampler, requests: readonly GenerateRequest[]) {
  const maxModelLen = Math.max(...requests.map(({ prompt, maxNewTokens }) => prompt.length + maxNewTokens));
  await sampler.makeRoom({ maxSeqs: requests.length, maxModelLen });
  const tokens = requests.map((): number[] => []);
  const logprobs = requests.map((): number[] => []);
  for await (const made of sampler.generate(requests))
    made.keys.forEach((key, i) => {
      tokens[key - 1]?.push(made.tokens[i] ?? -1);
      logprobs[key - 1]?.push(made.logProbs[i] ?? Number.NaN);
    });
  return { tokens, logprobs };
}

/** Best logit minus second, per step. */
async function marginsOf(model: PolicyEngine, prompt: readonly number[], response: readonly number[]) {
  const steps = response.map((_, t) => prompt.length - 1 + t);
  const { targets_P: _, ...batch } = packed([[...prompt, ...response]]);
  const rows = await logitRows(model, { ...batch, positions_P: Int32Array.from(steps) });
  return rows.map((row) => {
    const [best = Number.NaN, second = Number.NaN] = Float32Array.from(row).sort().reverse();
    return best - second;
  });
}
