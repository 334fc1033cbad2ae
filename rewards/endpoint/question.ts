/** The question to a judge, and the score in its answer. */
import { runInNewContext } from 'node:vm';
import type { EndpointQuestion } from '../../core/endpoint.ts';
import type { ScorerInput } from '../types.ts';

export interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

/** A judge's answer without a usable score. The sample fails with this text. */
export class NoScore extends Error {}

/** A pattern that takes longer on an answer is one that backtracks without end. */
const patternMs = 200;
const shownStart = 200;
/** Braces at which an object is looked for, from the end. */
const mostStarts = 100;

export function messagesFor({ system, template }: EndpointQuestion, input: ScorerInput): ChatMessage[] {
  const texts: Readonly<Record<string, string>> = {
    prompt: input.prompt ?? '',
    response: input.solutionStr,
    ground_truth: textOf(input.groundTruth),
  };
  // In one pass, so that a response cannot name a place of the template.
  const content = template.replace(/\{(prompt|response|ground_truth)\}/g, (_, name: string) => texts[name] ?? '');
  const user = { role: 'user', content };
  return system === undefined ? [user] : [{ role: 'system', content: system }, user];
}

/** @throws NoScore. `range`: lowest and highest score. */
export function scoreIn(
  answer: string,
  { score }: Pick<EndpointQuestion, 'score'>,
  range: readonly [number, number] | undefined,
): number {
  const read = 'pattern' in score ? byPattern(answer, score.pattern) : byField(answer, score.field);
  if (!Number.isFinite(read.value))
    throw new NoScore(`the judge's score ${JSON.stringify(read.text)} is no number; its answer: ${startOf(answer)}`);
  if (range !== undefined) assertInRange(read.value, range, `; the judge's answer: ${startOf(answer)}`);
  return read.value;
}

/** @throws NoScore. */
export function assertInRange(score: number, [low, high]: readonly [number, number], more = ''): void {
  if (score >= low && score <= high) return;
  throw new NoScore(`the score ${score} is outside of reward.endpoint.score_range, ${low} to ${high}${more}`);
}

export function startOf(text: string): string {
  return JSON.stringify(text.length <= shownStart ? text : `${text.slice(0, shownStart)}…`);
}

/** The last match counts: a judge thinks first, and gives its score at the end. */
function byPattern(answer: string, pattern: string): { readonly text: string; readonly value: number } {
  const found = lastMatch(answer, pattern);
  if (found === undefined)
    throw new NoScore(
      `the judge's answer has no score (reward.endpoint.score_pattern ${JSON.stringify(pattern)}): ${startOf(answer)}`,
    );
  return { text: found, value: numberOf(found) };
}

/** The last match, found in a context with a time limit: the pattern is the recipe's, and the text a model's. */
function lastMatch(answer: string, pattern: string): string | undefined {
  const source = `let last; for (const match of answer.matchAll(new RegExp(pattern, 'g'))) last = match; last && (last[1] ?? last[0])`;
  try {
    const found: unknown = runInNewContext(source, { answer, pattern }, { timeout: patternMs });
    return typeof found === 'string' ? found : undefined;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new NoScore(
      `reward.endpoint.score_pattern ${JSON.stringify(pattern)} cannot be matched (${why}): ${startOf(answer)}`,
    );
  }
}

function byField(answer: string, field: string): { readonly text: string; readonly value: number } {
  const object = jsonIn(answer);
  if (object === undefined)
    throw new NoScore(`the judge's answer has no JSON object with ${JSON.stringify(field)}: ${startOf(answer)}`);
  const found = field.split('.').reduce<unknown>((value, name) => ownField(value, name), object);
  if (found === undefined)
    throw new NoScore(`the JSON of the judge's answer has no field ${JSON.stringify(field)}: ${startOf(answer)}`);
  const text = typeof found === 'string' ? found : (JSON.stringify(found) ?? '');
  return { text, value: typeof found === 'number' ? found : typeof found === 'string' ? numberOf(found) : Number.NaN };
}

const ownField = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

/** The whole answer, or the last object in it: models write text and fences around it. */
function jsonIn(answer: string): object | undefined {
  const whole = parsed(answer.trim());
  if (whole !== undefined) return whole;
  const end = answer.lastIndexOf('}') + 1;
  let at = answer.lastIndexOf('{', end);
  for (let tries = 0; at >= 0 && tries < mostStarts; tries++) {
    const value = parsed(answer.slice(at, end));
    if (value !== undefined || at === 0) return value;
    at = answer.lastIndexOf('{', at - 1);
  }
  return undefined;
}

function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** `Number` takes an empty text for 0. */
const numberOf = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text));

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
