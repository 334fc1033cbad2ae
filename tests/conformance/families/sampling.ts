import { logProbEntropy, processLogits } from '../../../native/sampling.ts';
import { pureEvaluator } from '../evaluators.ts';
import { inputsOf, numbers, paramsOf } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const sampling = pureEvaluator('sampling', {
  logits_processors: logitsProcessors,
  logprob_entropy: labelStatistics,
});

/** `null` omits a processor. The processors refuse temperature 0; the generator decodes greedily then. */
function logitsProcessors(testCase: GoldenCase): Outcome {
  const params = paramsOf(testCase);
  const settings = {
    temperature: params.optionalNumber('temperature') ?? 1,
    topK: params.optionalNumber('top_k') ?? 0,
    topP: params.optionalNumber('top_p') ?? 1,
    minP: params.optionalNumber('min_p') ?? 0,
    repetitionPenalty: params.optionalNumber('repetition_penalty') ?? 1,
  };
  const seen = inputsOf(testCase).get('input_ids') as number[][] | undefined;
  const rows = (inputsOf(testCase).get('logits') as unknown[]).map((row, i) =>
    processLogits(Float32Array.from(numbers(row)), settings, Int32Array.from(seen?.[i] ?? [])),
  );
  return {
    processed_logits: rows,
    probs: rows.map(softmax),
    kept: rows.map((row) => Array.from(row, (value) => value > -Infinity)),
  };
}

function softmax(scores_V: Float32Array): number[] {
  const max = scores_V.reduce((a, b) => Math.max(a, b), -Infinity);
  const weights_V = Array.from(scores_V, (score) => Math.exp(score - max));
  const total = weights_V.reduce((a, b) => a + b, 0);
  return weights_V.map((weight) => weight / total);
}

function labelStatistics(testCase: GoldenCase): Outcome {
  const temperature = paramsOf(testCase).number('temperature');
  const labels = inputsOf(testCase).get('labels') as number[][];
  const rows = (inputsOf(testCase).get('logits') as unknown[][]).map((sequence, b) =>
    sequence.map((row, t) => logProbEntropy(Float32Array.from(numbers(row)), labels[b]?.[t] ?? -1, temperature)),
  );
  const field = (name: 'logProb' | 'entropy' | 'sumPiSquared' | 'greedy') =>
    rows.map((row) => row.map((cell) => cell[name]));
  return {
    log_probs: field('logProb'),
    entropy: field('entropy'),
    sum_pi_squared: field('sumPiSquared'),
    greedy: field('greedy'),
  };
}
