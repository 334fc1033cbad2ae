/**
 * Compares a real model with float64 results of transformers. It runs only where both exist: the model's folder
 * (PETREL_SMOLLM2, or the one that examples/02-smollm2-addition/make-model.py creates) and the reference file
 * (PETREL_SMOLLM2_EXPECTED, or the shared one).
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';
import { createGenerator, engineInfo } from '../native/index.ts';
import type { NativeTrainer } from '../native/index.ts';
import { largestDifference, oneSequence, openFolder } from './score-texts.ts';

interface Expected {
  readonly log_probs: readonly {
    readonly prompt_ids: readonly number[];
    readonly answer_ids: readonly number[];
    readonly log_probs: readonly number[];
    readonly entropy: readonly number[];
  }[];
  readonly greedy: readonly {
    readonly prompt_ids: readonly number[];
    readonly steps: readonly { readonly id: number; readonly margin: number; readonly log_prob: number }[];
  }[];
  readonly gradient: {
    readonly value: number;
    readonly global_norm: number;
    readonly norms: Readonly<Record<string, number>>;
  };
}

const modelFolder = process.env['PETREL_SMOLLM2'] ?? join(packageRoot(), 'examples/02-smollm2-addition/model');
const expectedFile =
  process.env['PETREL_SMOLLM2_EXPECTED'] ?? join(packageRoot(), '../shared/real/smollm2/expected.json');
const missing = [join(modelFolder, 'model.safetensors'), expectedFile].filter((path) => !existsSync(path));
if (missing.length > 0)
  console.log(
    `the real-model tests are skipped: ${missing.join(' and ')} is not there (examples/02-smollm2-addition/make-model.py makes the model)`,
  );

const { bf16, threads } = engineInfo();
/** fp32 sums have another order than float64 sums: rounding alone changes a logit by about this much. */
const fp32Rounding = 2e-4;
/** bf16 weights and activations through 30 layers. Measured: 0.13 and 0.010. */
const bf16Rounding = { largest: 0.3, mean: 3e-2 };
const gradientError = 0.01;

describe.skipIf(missing.length > 0)('SmolLM2-135M-Instruct', () => {
  const expected = missing.length > 0 ? undefined : (JSON.parse(readFileSync(expectedFile, 'utf8')) as Expected);
  const need = () => expected as Expected;
  let trainer: NativeTrainer;
  beforeAll(async () => {
    trainer = await openFolder(modelFolder, { compute: 'fp32', deterministic: false, threads }, true);
  });
  afterAll(() => trainer.close());

  it('gives the log-probs and entropies of transformers in fp32', () => {
    const { logProb, entropy } = differences(trainer, need());
    console.log(
      `fp32: log-probs within ${logProb.largest.toExponential(2)}, entropies within ${entropy.largest.toExponential(2)}`,
    );
    expect(logProb.largest).toBeLessThan(fp32Rounding);
    expect(entropy.largest).toBeLessThan(fp32Rounding);
  });

  it('chooses the greedy tokens of transformers wherever the margin exceeds the rounding', () => {
    const decided = greedyAgreement(trainer, need(), fp32Rounding);
    console.log(
      `fp32 greedy: ${decided.agreeing} of ${decided.compared} tokens, log-probs within ${decided.logProb.toExponential(2)}`,
    );
    expect(decided.agreeing).toBe(decided.compared);
    expect(decided.compared).toBeGreaterThan(50);
    expect(decided.logProb).toBeLessThan(fp32Rounding);
  });

  it('gives its loss and the norm of every gradient', () => {
    const loss = -sumOfAnswers(trainer, need());
    const { value, global_norm: globalNorm, norms } = need().gradient;
    const errors = trainer.parameters.map(({ name, offset, size }) => ({
      name,
      error: Math.abs(l2(trainer.read('grads', offset, new Float32Array(size))) / (norms[name] ?? Number.NaN) - 1),
    }));
    const worst = errors.reduce((a, b) => (b.error <= a.error ? a : b));
    console.log(
      `loss off by ${Math.abs(loss / value - 1).toExponential(2)}, gradient norms by at most ${worst.error.toExponential(2)} (${worst.name})`,
    );
    expect(Math.abs(loss / value - 1)).toBeLessThan(gradientError);
    expect(Math.abs(l2(trainer.read('grads')) / globalNorm - 1)).toBeLessThan(gradientError);
    expect(errors.filter(({ error }) => !(error < gradientError))).toEqual([]);
    expect(errors).toHaveLength(Object.keys(norms).length);
    trainer.zeroGrads();
  });

  it.skipIf(!bf16)('stays near them in bf16', async () => {
    const rounded = await openFolder(modelFolder, { compute: 'bf16', deterministic: false, threads }, false);
    const { logProb } = differences(rounded, need());
    rounded.close();
    console.log(
      `bf16: log-probs within ${logProb.largest.toExponential(2)}, ${logProb.mean.toExponential(2)} on average`,
    );
    expect(logProb.mean).toBeLessThan(bf16Rounding.mean);
    expect(logProb.largest).toBeLessThan(bf16Rounding.largest);
  });
});

interface Spread {
  readonly largest: number;
  readonly mean: number;
}

function differences(
  trainer: NativeTrainer,
  { log_probs: cases }: Expected,
): { readonly logProb: Spread; readonly entropy: Spread } {
  const got = cases.map(({ prompt_ids, answer_ids }) => {
    const ids = [...prompt_ids, ...answer_ids];
    return trainer.forward(oneSequence(ids, 0, ids.length), {
      temperature: 1,
      wants: ['logProbs', 'entropy'],
      keep: false,
    });
  });
  const logProb = got.map(({ outputs }) => outputs.logProbs.subarray(0, -1));
  return {
    logProb: spread(logProb.map((values, i) => [values, cases[i]?.log_probs ?? []])),
    entropy: spread(got.map(({ outputs }, i) => [outputs.entropy, cases[i]?.entropy ?? []])),
  };
}

function spread(pairs: readonly (readonly [got: ArrayLike<number>, want: readonly number[]])[]): Spread {
  const all = pairs.flatMap(([got, want]) => want.map((value, i) => Math.abs((got[i] ?? Number.NaN) - value)));
  const largest = Math.max(...pairs.map(([got, want]) => largestDifference(got, want)));
  return { largest, mean: all.reduce((sum, x) => sum + x, 0) / all.length };
}

/** Compares up to the first step whose second-best token is so close that rounding may choose it. */
function greedyAgreement(
  trainer: NativeTrainer,
  { greedy }: Expected,
  rounding: number,
): { readonly agreeing: number; readonly compared: number; readonly logProb: number } {
  let [agreeing, compared, logProb] = [0, 0, 0];
  for (const { prompt_ids, steps } of greedy) {
    const made = decodeGreedily(trainer, prompt_ids, steps.length);
    const close = steps.findIndex(({ margin }) => margin <= 2 * rounding);
    const certain = close < 0 ? steps : steps.slice(0, close);
    certain.forEach(({ id, log_prob }, t) => {
      compared += 1;
      if (made.tokens[t] === id) agreeing += 1;
      logProb = Math.max(logProb, Math.abs((made.logProbs[t] ?? Number.NaN) - log_prob));
    });
  }
  return { agreeing, compared, logProb };
}

function decodeGreedily(
  trainer: NativeTrainer,
  prompt: readonly number[],
  count: number,
): { readonly tokens: number[]; readonly logProbs: number[] } {
  const generator = createGenerator(trainer, { maxSeqs: 1, maxModelLen: prompt.length + count });
  generator.submit({
    prompt: Int32Array.from(prompt),
    samples: [{ key: 1, random: { seed: [0, 0], draw: 0, sample: 0, turn: 0 } }],
    sampling: { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
    maxNewTokens: count,
    stopTokens: new Int32Array(0),
  });
  const [tokens, logProbs]: [number[], number[]] = [[], []];
  while (generator.stats.live + generator.stats.waiting > 0) {
    const step = generator.step();
    tokens.push(...step.tokens);
    logProbs.push(...step.logProbs);
  }
  generator.close();
  return { tokens, logProbs };
}

/** Sum of log-probs of the answers of the first two cases; the gradient of its negative is left in the trainer. */
function sumOfAnswers(trainer: NativeTrainer, { log_probs: cases }: Expected): number {
  trainer.zeroGrads();
  let sum = 0;
  for (const { prompt_ids, answer_ids } of cases.slice(0, 2)) {
    const ids = [...prompt_ids, ...answer_ids];
    const {
      handle,
      outputs: { logProbs: logProbs_P },
    } = trainer.forward(oneSequence(ids, prompt_ids.length - 1), {
      temperature: 1,
      wants: ['logProbs'],
      keep: true,
    });
    trainer.backward(handle, { logProbs: new Float32Array(logProbs_P.length).fill(-1) });
    sum += logProbs_P.reduce((total, x) => total + x, 0);
  }
  return sum;
}

function l2(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
}
