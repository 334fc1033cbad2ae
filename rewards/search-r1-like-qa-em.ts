/**
 * Exact match of Search-R1 (verl: `reward_score/search_r1_like_qa_em.py`; Jin et al. 2025, arXiv 2503.09516): the last
 * `<answer>…</answer>` equals one of the targets, after lower-casing and without punctuation, articles and extra white
 * space.
 *
 * Odd, and kept:
 * - A match begins at the first open tag: `<answer>a<answer>b</answer>` gives `a<answer>b`.
 * - Only ASCII punctuation is removed, and nothing is put in its place: "rock-n-roll" becomes "rocknroll".
 * - An answer that consists of articles is the empty text, and equals a target that does too.
 * - More than 10 open or close tags divide a right score by 4, but not in the form with parts of words.
 */
import { badGroundTruth } from './ground-truth.ts';
import { countOf, strip, words } from './python-text.ts';
import type { Scorer, ScorerInput } from './types.ts';

const MOST_TAGS = 10;
const answerTags = /<answer>([\s\S]*?)<\/answer>/gu;
const punctuation = /[!-/:-@[-`{-~]/gu;
/** Python's `\b(a|an|the)\b`: every letter and number of Unicode belongs to a word. */
const articles = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu;

/**
 * Ground truth: `{target}`, a text or a list of texts. Settings: `score` (1: for a right answer), `format_score` (0:
 * for a wrong answer between tags), `substring` (false): a target may be a part of the answer (verl:
 * `compute_score_subem`). Also returns `acc` and `pred`.
 */
export const searchR1LikeQaEm: Scorer = (input, settings) => {
  const targets = targetsOf(input).map(normalizeQaAnswer);
  const pred = extractQaAnswer(input.solutionStr);
  if (pred === undefined) return { score: 0, acc: false, pred: null };
  const answer = normalizeQaAnswer(pred);
  const substring = Boolean(settings['substring'] ?? false);
  const acc = targets.some((target) => (substring ? answer.includes(target) : answer === target));
  if (!acc) return { score: Number(settings['format_score'] ?? 0), acc, pred };
  const score = Number(settings['score'] ?? 1);
  return { score: !substring && hasTooManyTags(input.solutionStr) ? score / 4 : score, acc, pred };
};

/** Content of the last pair of tags. */
export function extractQaAnswer(solution: string): string | undefined {
  const last = [...solution.matchAll(answerTags)].at(-1)?.[1];
  return last === undefined ? undefined : strip(last);
}

/** verl's `normalize_answer`. */
export function normalizeQaAnswer(answer: string): string {
  const text = answer.toLowerCase().replace(punctuation, '').replace(articles, ' ');
  return words(text).join(' ');
}

function hasTooManyTags(solution: string): boolean {
  return countOf(solution, '<answer>') > MOST_TAGS || countOf(solution, '</answer>') > MOST_TAGS;
}

export function targetsOf(input: ScorerInput): string[] {
  const { groundTruth } = input;
  const target: unknown =
    typeof groundTruth === 'object' && groundTruth !== null ? Reflect.get(groundTruth, 'target') : undefined;
  const targets: unknown[] = Array.isArray(target) ? target : [target];
  if (targets.every((one) => typeof one === 'string')) return targets;
  throw badGroundTruth('search_r1_like_qa_em', input, '{target: a text or a list of texts}');
}
