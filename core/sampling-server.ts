/** A server that somebody else runs and that samples for a run, as jobs carry it: `rollout.url` and its neighbours. */

/** The interfaces that are known: `rollout.name` beside `rollout.url`. */
export const samplingApis = ['vllm', 'sglang'] as const;
export type SamplingApiName = (typeof samplingApis)[number];

export interface SamplingServer {
  readonly api: SamplingApiName;
  readonly url: string;
  /** `env:NAME`: never the key itself. */
  readonly apiKey?: string;
  /** Folder for new weights that the workers and the server see under this path. Absent: one in PETREL_HOME. */
  readonly weightsFolder?: string;
  /** The server is taken for dead after this time without a sign of it. */
  readonly timeoutMs: number;
}

/** Name of the engine that samples with such servers. Every worker has it. */
export const httpName = 'http';

/** Names of these engines that a recipe can choose: a server is chosen by `rollout.url`. */
export const namesOfEngines = (engines: readonly { readonly name: string }[]): readonly string[] =>
  [...new Set(engines.map(({ name }) => name))].filter((name) => name !== httpName);

/** Is it an address of the machine that asks? Then server and worker have the same files. */
export function isOnThisMachine(url: string): boolean {
  const host = new URL(url).hostname;
  return host === 'localhost' || host.endsWith('.localhost') || host.startsWith('127.') || host === '[::1]';
}

/** The address without a final slash, and without the path of OpenAI's interface. */
export const serverRoot = (url: string): string => url.replace(/\/+$/, '').replace(/\/v1$/, '');
