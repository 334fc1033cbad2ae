/**
 * How the generator samples from one row of logits, on plain arrays. Order of the filters: repetition penalty,
 * temperature, top-k, top-p, min-p, as in Hugging Face's `generate()`. The draw is an inverse CDF in token order
 * (src/sampling.h).
 */
import { InvalidInputError, PauseError } from '../core/errors.ts';
import type { GenerateSample } from '../core/ports/sampler.ts';
import type { SamplingSettings } from '../core/sampling-settings.ts';
import { native } from './binding.ts';

/** The addon's functions of src/sampling_binding.cpp. */
interface SamplingFunctions {
  /** Undefined when the logits are not finite. */
  processLogits(logits_V: Float32Array, sampling_5: Float64Array, seen_T: Int32Array): Float32Array | undefined;
  /** random_6: both words of the seed, draw, sample, turn, position. */
  sampleToken(
    logits_V: Float32Array,
    sampling_5: Float64Array,
    seen_T: Int32Array,
    random_6: Uint32Array,
  ): SampledToken;
  logProbEntropy(logits_V: Float32Array, label: number, temperature: number): RowStatistics;
  philox(counter_4: Uint32Array, key_2: Uint32Array): Uint32Array;
}

const addon = native<SamplingFunctions>;

export interface SampledToken {
  readonly token: number;
  /** Log-prob under softmax(logits / temperature); greedy uses temperature 1. */
  readonly logProb: number;
  /** Log-prob under the filtered distribution; 0 when greedy. */
  readonly samplingLogProb: number;
}

export interface RowStatistics {
  readonly logProb: number;
  readonly entropy: number;
  readonly sumPiSquared: number;
  /** The most probable token, the lowest id on ties. */
  readonly greedy: number;
}

/**
 * Logits after penalty, temperature and filters; −Infinity for dropped tokens. `seen_T`: prompt and response so far.
 */
export function processLogits(
  logits_V: Float32Array,
  settings: SamplingSettings,
  seen_T: Int32Array = new Int32Array(0),
): Float32Array {
  checkSampling(settings);
  if (settings.temperature === 0)
    throw new InvalidInputError('temperature 0 (greedy) has no processed logits; use a temperature above 0');
  checkSeen(seen_T, logits_V.length);
  return addon().processLogits(logits_V, packSampling(settings), seen_T) ?? refuseLogits();
}

/**
 * The token that the generator chooses at `position` of a response, given the logits and the sample's random counter.
 */
export function sampleToken(
  logits_V: Float32Array,
  settings: SamplingSettings,
  random: GenerateSample['random'],
  position: number,
  seen_T: Int32Array = new Int32Array(0),
): SampledToken {
  checkSampling(settings);
  checkSeen(seen_T, logits_V.length);
  const counter = Uint32Array.of(...random.seed, random.draw, random.sample, random.turn, position);
  const sampled = addon().sampleToken(logits_V, packSampling(settings), seen_T, counter);
  return sampled.token < 0 ? refuseLogits() : sampled;
}

/**
 * Log-prob of a label, entropy, Σp² and argmax of softmax(logits / temperature). The entropy is NaN where a logit is
 * −∞.
 */
export function logProbEntropy(logits_V: Float32Array, label: number, temperature: number): RowStatistics {
  if (!(temperature > 0)) throw new InvalidInputError(`temperature must be above 0, got ${temperature}`);
  checkSeen(Int32Array.of(label), logits_V.length);
  return addon().logProbEntropy(logits_V, label, temperature);
}

/** Philox4x32-10: the 128 random bits of a counter under a key. */
export function philox(counter_4: Uint32Array, key_2: Uint32Array): Uint32Array {
  if (counter_4.length !== 4 || key_2.length !== 2)
    throw new InvalidInputError('philox needs a counter of 4 words and a key of 2');
  return addon().philox(counter_4, key_2);
}

/** @throws InvalidInputError that names the setting, the allowed values and the given one. */
export function checkSampling(settings: SamplingSettings): void {
  const { temperature, topK, topP, minP, repetitionPenalty } = settings;
  demand(temperature >= 0 && Number.isFinite(temperature), 'temperature', '0 (greedy) or above', temperature);
  demand(Number.isInteger(topK) && topK >= 0 && topK <= 0x7fffffff, 'topK', 'an integer, 0 (off) or above', topK);
  demand(topP >= 0, 'topP', '0 or above (1 = off)', topP);
  demand(minP >= 0 && minP <= 1, 'minP', 'between 0 (off) and 1', minP);
  demand(
    repetitionPenalty > 0 && Number.isFinite(repetitionPenalty),
    'repetitionPenalty',
    'above 0 (1 = off)',
    repetitionPenalty,
  );
}

/** Settings in the form that the addon takes. */
export function packSampling(s: SamplingSettings): Float64Array {
  return Float64Array.of(s.temperature, s.topK, s.topP, s.minP, s.repetitionPenalty);
}

function demand(holds: boolean, name: string, wanted: string, value: number): void {
  if (!holds) throw new InvalidInputError(`sampling: ${name} must be ${wanted}, got ${value}`);
}

function checkSeen(tokens: Int32Array, vocab: number): void {
  const bad = tokens.find((token) => token < 0 || token >= vocab);
  if (bad !== undefined) throw new InvalidInputError(`token ${bad} is outside the vocabulary of ${vocab}`);
}

function refuseLogits(): never {
  throw new PauseError('NonFiniteLogits', 'the logits contain NaN or +infinity, or are all −infinity');
}
