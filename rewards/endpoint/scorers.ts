/**
 * The built-in scorers that ask the endpoint. They run no code of others, so they need no process of their own: `judge`
 * asks a chat model about a response, `remote` posts it to a service that scores.
 */
import { chatUrl } from '../../core/endpoint.ts';
import { InvalidInputError, PauseError } from '../../core/errors.ts';
import { toScored } from '../result.ts';
import type { Scored, ScorerInput } from '../types.ts';
import type { EndpointClient } from './client.ts';
import { assertInRange, messagesFor, NoScore, scoreIn, startOf } from './question.ts';

export type EndpointScorer = (
  client: EndpointClient,
  input: ScorerInput,
  say: (line: string) => void,
  signal: AbortSignal,
) => Promise<Scored>;

/** A proxy before the service may answer a page once or twice; a service of another kind always does. */
const nonsenseTries = 3;

export const endpointScorers: Readonly<Record<string, EndpointScorer>> = { judge, remote };

async function judge(
  client: EndpointClient,
  input: ScorerInput,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Scored> {
  const { question, model, range } = client.settings;
  if (question === undefined) throw new InvalidInputError('the scorer judge needs reward.endpoint');
  const body = { ...question.sampling, ...(model !== undefined && { model }), messages: messagesFor(question, input) };
  const answer = await sensible(client, chatUrl(urlOf(client)), body, chatAnswer, 'no chat completion', say, signal);
  if (answer.text === '') throw new NoScore(`the judge answered nothing${cutOff(answer)}`);
  try {
    const score = scoreIn(answer.text, question, range);
    return { score, columns: { acc: score, judgement: client.clean(answer.text) } };
  } catch (error) {
    if (!(error instanceof NoScore)) throw error;
    throw new NoScore(`${client.clean(error.message)}${cutOff(answer)}`);
  }
}

async function remote(
  client: EndpointClient,
  { dataSource, prompt, solutionStr, groundTruth, extraInfo }: ScorerInput,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Scored> {
  const body = {
    data_source: dataSource,
    prompt,
    solution_str: solutionStr,
    ground_truth: groundTruth,
    extra_info: extraInfo,
  };
  const read = (text: string) => remoteAnswer(client.clean(text));
  const { value, text } = await sensible(client, urlOf(client), body, read, 'no JSON', say, signal);
  const scored = scoredOf(value, text);
  if (client.settings.range !== undefined) assertInRange(scored.score, client.settings.range);
  return scored;
}

function scoredOf(value: unknown, text: string): Scored {
  try {
    return toScored(value);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new NoScore(`${why}; the remote scorer's answer: ${startOf(text)}`);
  }
}

/** Posts until `read` understands the answer. @throws PauseError `EndpointNonsense` when it never does. */
async function sensible<T>(
  client: EndpointClient,
  url: string,
  body: object,
  read: (text: string) => T | undefined,
  instead: string,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const { text } = await client.ask({ method: 'POST', url, body: JSON.stringify(body), say }, signal);
    const answer = read(text);
    if (answer !== undefined) return answer;
    if (tries === nonsenseTries) throw client.nonsense(url, instead, text);
  }
}

interface ChatAnswer {
  readonly text: string;
  /** Why the model stopped: `stop`, `length`. */
  readonly finish: unknown;
}

function chatAnswer(text: string): ChatAnswer | undefined {
  const { choices } = (jsonOf(text)?.value ?? {}) as { choices?: unknown };
  const [choice] = (Array.isArray(choices) ? choices : []) as unknown[];
  if (typeof choice !== 'object' || choice === null) return undefined;
  const { message, finish_reason: finish } = choice as { message?: unknown; finish_reason?: unknown };
  if (typeof message !== 'object' || message === null) return undefined;
  const { content } = message as { content?: unknown };
  if (typeof content === 'string') return { text: content, finish };
  // A model that only thought has no content; some servers give it in parts.
  if (content === null || content === undefined) return { text: '', finish };
  if (!Array.isArray(content)) return undefined;
  const parts = content.map((part: unknown) => (part as { text?: unknown } | null)?.text);
  return { text: parts.filter((part) => typeof part === 'string').join(''), finish };
}

const cutOff = ({ finish }: ChatAnswer): string =>
  finish === 'length' ? '; it was cut at reward.endpoint.max_tokens' : '';

/** Python writes NaN and Infinity, which are no JSON: they are read as null, and refused as a score. */
function remoteAnswer(text: string): { readonly value: unknown; readonly text: string } | undefined {
  const read = jsonOf(text) ?? jsonOf(text.replace(/-?\b(?:NaN|Infinity)\b/g, 'null'));
  return read && { value: read.value, text };
}

function jsonOf(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

function urlOf({ settings }: EndpointClient): string {
  if (settings.url !== undefined) return settings.url;
  throw new PauseError('EndpointRefused', 'the recipe names no reward.endpoint.url');
}
