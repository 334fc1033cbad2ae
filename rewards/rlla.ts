/**
 * Tool calls of ToolRL and GDPO (verl: `reward_score/rlla.py`; Qian et al. 2025, arXiv 2504.13958; Liu et al. 2026,
 * arXiv 2601.05242). The score is the sum of two components, which are returned as columns:
 *
 *   format_reward     1 when the response has the blocks of the ground truth in their form and order, each once; else 0
 *   accuracy_reward   −3 … 3: how well the called tools agree with those of the ground truth; 0 when it calls none
 *
 *   accuracy = 6 · (similarity of names + Σ over wanted calls of the best unused call) / (1 + Σ (1 + parameters)) − 3
 *
 * The best call of the same name has the largest sum of the similarity of parameter names and the number of equal
 * values. Similarity is |intersection| / |union| of multisets.
 *
 * Odd, and kept: equal lists of calls score 3 at once, in any other case the largest value is reached only with the
 * sum; anything that cannot be read in the response, or is no call, scores −3; 3 = 3.0 and 1 = true, as in Python.
 */
import { at } from '../core/at.ts';
import { InvalidInputError } from '../core/errors.ts';
import { badGroundTruth, groundTruthText, rowName } from './ground-truth.ts';
import { parsePythonJson, pythonEquals, type PythonDict, type PythonValue } from './python-json.ts';
import { countOf, strip } from './python-text.ts';
import type { Scorer, ScorerInput, ScorerSettings } from './types.ts';

const BEST = 3;
const WORST = -3;

/** The assistant's turn in a response that contains the chat template's marks, by a part of the experiment's name. */
const TEMPLATES = [
  { name: 'llama', start: '<|start_header_id|>assistant<|end_header_id|>', end: '<|eot_id|>' },
  { name: 'qwen', start: '<|im_start|>assistant', end: '<|im_end|>' },
] as const;

/**
 * Ground truth: the whole wanted response. `experiment_name`, from the settings or from `extra_info`, contains "llama"
 * or "qwen".
 */
export const rlla: Scorer = (input, settings) => {
  const truth = groundTruthText('rlla', input);
  const response = assistantTurn(input, settings);
  const wanted = wantedCalls(truth, input);
  const formatReward = Number(hasFormOf(truth, response));
  const accuracyReward = wanted === undefined ? 0 : callsReward(wanted, response);
  return { score: formatReward + accuracyReward, format_reward: formatReward, accuracy_reward: accuracyReward };
};

function assistantTurn(input: ScorerInput, settings: ScorerSettings): string {
  const { solutionStr, extraInfo } = input;
  const fromRow =
    typeof extraInfo === 'object' && extraInfo !== null ? Reflect.get(extraInfo, 'experiment_name') : undefined;
  const experiment = String(settings['experiment_name'] ?? fromRow ?? '');
  const template = TEMPLATES.find(({ name }) => experiment.includes(name));
  if (template === undefined) {
    throw new InvalidInputError(`rlla expects an experiment_name that contains llama or qwen, got "${experiment}"`, {
      where: rowName(input),
      hint: 'set reward.reward_kwargs.experiment_name to the family of the chat template: llama or qwen',
    });
  }
  return strip(at(at(solutionStr.split(template.start), -1).split(template.end), 0));
}

/** Blocks of a response, each with the form that it has between what comes before and after it. */
const FORMS = {
  response: /^<think>[\s\S]*?<\/think>\n<response>[\s\S]*?<\/response>$/,
  calls: /^<think>[\s\S]*?<\/think>\n<tool_call>\n[\s\S]*?\n<\/tool_call>$/,
  both: /^<think>[\s\S]*?<\/think>\n<tool_call>\n[\s\S]*?\n<\/tool_call>\n<response>[\s\S]*?<\/response>$/,
  neither: /^<think>[\s\S]*?<\/think>$/,
} as const;

function hasFormOf(truth: string, response: string): boolean {
  const [calls, answers] = [truth.includes('<tool_call>'), truth.includes('<response>')];
  if (calls && !hasOnce(response, 'tool_call')) return false;
  if (answers && !hasOnce(response, 'response')) return false;
  return FORMS[calls ? (answers ? 'both' : 'calls') : answers ? 'response' : 'neither'].test(response);
}

function hasOnce(text: string, tag: string): boolean {
  return countOf(text, `<${tag}>`) === 1 && countOf(text, `</${tag}>`) === 1;
}

/** undefined when the ground truth calls no tool. @throws InvalidInputError when its calls are no JSON. */
export function wantedCalls(truth: string, input: ScorerInput): readonly PythonValue[] | undefined {
  if (!truth.includes('<tool_call>')) return undefined;
  try {
    return callsIn(truth);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw badGroundTruth('rlla', input, 'one JSON object per line between <tool_call> and </tool_call>');
  }
}

/** The lines of the first block, each a JSON value. */
function callsIn(text: string): PythonValue[] {
  const block = at(at(text.split('<tool_call>'), 1).split('</tool_call>'), 0);
  return strip(block).split('\n').map(parsePythonJson);
}

/** The reference gives the lowest reward for whatever goes wrong. */
function callsReward(wanted: readonly PythonValue[], response: string): number {
  if (!response.includes('<tool_call>') || !response.includes('</tool_call>')) return WORST;
  try {
    return compareCalls(wanted, callsIn(response));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof NoCall || error instanceof RangeError) return WORST;
    throw error;
  }
}

/** Some value is not what a call has at its place. */
class NoCall extends Error {}

function compareCalls(wanted: readonly PythonValue[], called: readonly PythonValue[]): number {
  if (pythonEquals(wanted, called)) return BEST;
  const names = called.map(nameOf);
  let score = similarity(wanted.map(nameOf), names);
  let largest = 1;
  const used = new Set<number>();
  for (const call of wanted) {
    largest += 1 + lengthOf(partOf(call, 'parameters'));
    const best = bestCall(call, { called, names, used });
    if (best === undefined) continue;
    used.add(best.index);
    score += best.score;
  }
  return ((BEST - WORST) * score) / largest + WORST;
}

interface Candidates {
  readonly called: readonly PythonValue[];
  readonly names: readonly PythonValue[];
  readonly used: ReadonlySet<number>;
}

/** The first of the best unused calls of the same name; undefined when none agrees in anything. */
function bestCall(
  wanted: PythonValue,
  { called, names, used }: Candidates,
): { readonly index: number; readonly score: number } | undefined {
  let best: { index: number; score: number } | undefined;
  for (const [index, call] of called.entries()) {
    if (used.has(index) || !pythonEquals(at(names, index), nameOf(wanted))) continue;
    const score = agreement(parametersOf(wanted), parametersOf(call));
    if (score > (best?.score ?? 0)) best = { index, score };
  }
  return best;
}

function agreement(wanted: PythonDict, called: PythonDict): number {
  let equal = 0;
  for (const [name, value] of wanted) {
    const other = called.get(name);
    if (other !== undefined && pythonEquals(value, other)) equal += 1;
  }
  return similarity([...wanted.keys()], [...called.keys()]) + equal;
}

/** |intersection| / |union| of multisets; 1 for two empty ones. */
function similarity(a: readonly PythonValue[], b: readonly PythonValue[]): number {
  if (pythonEquals(a, b)) return 1;
  if (a.length === 0 || b.length === 0) return 0;
  const left = countsOf(b);
  let common = 0;
  for (const key of a.map(keyOf)) {
    const count = left.get(key) ?? 0;
    if (count > 0) common += 1;
    left.set(key, count - 1);
  }
  return common / (a.length + b.length - common);
}

function countsOf(values: readonly PythonValue[]): Map<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const key of values.map(keyOf)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** One key for all values that Python counts as the same. Lists and dicts cannot be counted. */
function keyOf(value: PythonValue): unknown {
  if (typeof value === 'boolean') return BigInt(value);
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value);
  if (typeof value === 'object' && value !== null) throw new NoCall();
  return value;
}

function nameOf(call: PythonValue): PythonValue {
  return partOf(call, 'name');
}

function parametersOf(call: PythonValue): PythonDict {
  const parameters = partOf(call, 'parameters');
  if (!(parameters instanceof Map)) throw new NoCall();
  return parameters;
}

/** Python's `len`. */
function lengthOf(value: PythonValue): number {
  if (value instanceof Map) return (value as PythonDict).size;
  if (typeof value === 'string') return [...value].length;
  if (Array.isArray(value)) return value.length;
  throw new NoCall();
}

function partOf(call: PythonValue, part: string): PythonValue {
  const value = call instanceof Map ? (call as PythonDict).get(part) : undefined;
  if (value === undefined) throw new NoCall();
  return value;
}
