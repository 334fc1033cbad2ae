/**
 * The built-in scorers that ask the endpoint. They run no code of others, so they need no process of their own: `judge`
 * asks a chat model about a response, `remote` posts it to a service that scores.
 */
import { chatUrl } from '../../core/endpoint.ts';
import { InvalidInputError, PauseError } from '../../core/errors.ts';
import { toScored } from '../result.ts';
import type { Scored, ScorerInput } from '../types.ts';
import type { EndpointClient } from './client.ts';
import type { HttpAnswer } from './post.ts';
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
  const bodyOf = (asked: ScorerInput) => ({
    ...question.sampling,
    ...(model !== undefined && { model }),
    messages: messagesFor(question, asked),
  });
  const asking = { client, url: chatUrl(urlOf(client)), say, signal };
  const answer = await sensible(asking, input, bodyOf, chatAnswer, 'no chat completion');
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
  input: ScorerInput,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Scored> {
  const bodyOf = ({ dataSource, prompt, solutionStr, groundTruth, extraInfo }: ScorerInput) => ({
    data_source: dataSource,
    prompt,
    solution_str: solutionStr,
    ground_truth: groundTruth,
    extra_info: extraInfo,
  });
  const read = (text: string) => remoteAnswer(client.clean(text));
  const asking = { client, url: urlOf(client), say, signal };
  const { value, text } = await sensible(asking, input, bodyOf, read, 'no JSON');
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

interface Asking {
  readonly client: EndpointClient;
  readonly url: string;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Posts until `read` understands the answer. @throws PauseError `EndpointNonsense` when it never does; NoScore when the
 * service refuses this sample, and PauseError `EndpointRefused` when it would refuse any.
 */
async function sensible<T>(
  asking: Asking,
  input: ScorerInput,
  bodyOf: (asked: ScorerInput) => object,
  read: (text: string) => T | undefined,
  instead: string,
): Promise<T> {
  const { client, url } = asking;
  for (let tries = 1; ; tries++) {
    const posted = await post(asking, bodyOf(input));
    if (posted.status >= 300) throw await refusal(asking, posted, bodyOf({ ...input, ...nothing }));
    const answer = read(posted.text);
    if (answer !== undefined) return answer;
    if (tries === nonsenseTries) throw client.nonsense(url, instead, posted.text);
  }
}

/** Statuses by which a service refuses what one request asks for: it may be too long, for example. */
const aboutRequest: readonly number[] = [400, 413, 422];

const post = ({ client, url, say, signal }: Asking, body: object): Promise<HttpAnswer> =>
  client.ask(
    { method: 'POST', url, body: JSON.stringify(body), say, passes: (status) => aboutRequest.includes(status) },
    signal,
  );

/** A sample that no service refuses for itself. */
const nothing = { prompt: '', solutionStr: '', groundTruth: '' };

/** A service that takes an empty sample refuses this one only. */
async function refusal(asking: Asking, posted: HttpAnswer, empty: object): Promise<Error> {
  const { client, url } = asking;
  if ((await post(asking, empty)).status >= 300) return client.refused(url, posted);
  return new NoScore(`the service refused the sample: HTTP ${posted.status} ${client.shown(posted.text)}`.trim());
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
