/** How the reward of a run asks an HTTP endpoint, as jobs carry it: the key `reward.endpoint` of a recipe. */

/** Limits of a run's requests over all its reward workers. */
export interface EndpointLimits {
  /** Requests at a time. */
  readonly concurrent: number;
  /** Requests in any 60 s. Absent: no limit. */
  readonly rpm?: number | undefined;
  /** Tokens in any 60 s. Absent: no limit. */
  readonly tpm?: number | undefined;
}

export interface EndpointSettings {
  /** Absent: there is no endpoint, and the limits hold for calls of the scorer. */
  readonly url?: string;
  readonly model?: string;
  /** `env:NAME`: never the key itself. */
  readonly apiKey?: string;
  readonly limits: EndpointLimits;
  /** Tokens that a request counts until its answer says how many it had. */
  readonly tokensPerRequest: number;
  /** Tries after the first one. */
  readonly retries: number;
  /** Time limit of one request. */
  readonly timeoutMs: number;
  /** What the scorer `judge` asks. */
  readonly question?: EndpointQuestion;
  /** Lowest and highest score. */
  readonly range?: readonly [number, number];
}

export interface EndpointQuestion {
  readonly system?: string;
  /** Text with {prompt}, {response} and {ground_truth}. */
  readonly template: string;
  /** Fields of the request beside `model` and `messages`. */
  readonly sampling: Readonly<Record<string, unknown>>;
  /** How the score stands in the answer: the first group of a regular expression, or a field of JSON. */
  readonly score: { readonly pattern: string } | { readonly field: string };
}

/** Built-in scorers that ask the endpoint themselves. */
export const ENDPOINT_SCORERS: readonly string[] = ['judge', 'remote'];

/** The URL at which chat models answer: `url` is the base address, as clients of OpenAI's interface take it. */
export const chatUrl = (url: string): string => `${baseUrl(url)}/chat/completions`;

/** The URL without a final slash, and without the path of one call. */
export const baseUrl = (url: string): string => url.replace(/\/+$/, '').replace(/\/chat\/completions$/, '');

/** The URL for texts, without a name and password, and without what follows `?`: each may hold a key. */
export const shownUrl = (url: string): string => url.replace(/[?#].*$/, '').replace(/^(\w+:\/\/)[^/]*@/, '$1');
