/** Does a server suit a run? What can be known before the first sample is asked of the server itself. */
import { PetrelError } from '../../core/errors.ts';
import type { SamplingServer } from '../../core/sampling-server.ts';
import type { SamplingSettings } from '../../core/sampling-settings.ts';
import { ServerConnection } from './connection.ts';
import type { Asked, ServerCaller } from './connection.ts';
import { wrongServer } from './faults.ts';
import type { SamplingApi, ServerFacts } from './sampling-api.ts';
import { SglangApi } from './sglang.ts';
import { VllmApi } from './vllm.ts';

/** The client of each interface. A new one is a file beside this one and a line here. */
const clients = { vllm: VllmApi, sglang: SglangApi } as const;

export const openServer = (server: SamplingServer, caller: ServerCaller): SamplingApi =>
  new clients[server.api](new ServerConnection(server, caller));

/** What a run asks of its server. */
export interface ServerWishes {
  /** Number of tokens of the run's model. */
  readonly vocab: number;
  /** Longest prompt and response together. */
  readonly maxModelLen: number;
  /** How responses are sampled, each way that occurs in the run. */
  readonly samplings: readonly SamplingSettings[];
}

/** Throws PauseError `WrongServer` where the server cannot give what the run needs. */
export async function requireSuits(
  server: SamplingServer,
  api: SamplingApi,
  facts: ServerFacts,
  { vocab, maxModelLen, samplings }: ServerWishes,
  asked: Asked = {},
): Promise<void> {
  requireContext(server, facts, maxModelLen);
  for (const sampling of samplings) requireReported(server, facts, sampling);
  await requireVocabulary(server, api, facts, vocab, asked);
}

/** What a server of each kind is started with for a longer context. */
const contextOptions = { vllm: '--max-model-len', sglang: '--context-length' } as const;

/** Throws PauseError `WrongServer` for a server that takes fewer tokens of a prompt and its response than `needed`. */
export function requireContext(server: SamplingServer, { maxModelLen }: ServerFacts, needed: number): void {
  if (needed <= maxModelLen) return;
  throw wrongServer(
    server.url,
    `takes ${maxModelLen} tokens of a prompt and its response; the run needs ${needed}`,
    `start it with ${contextOptions[server.api]} ${needed}, or shorten data.max_prompt_length and data.max_response_length`,
  );
}

/**
 * Training needs log-probs under softmax(logits / temperature). Throws PauseError `WrongServer` where the server gives
 * others with these settings.
 */
export function requireReported(server: SamplingServer, { logProbs }: ServerFacts, sampling: SamplingSettings): void {
  const { temperature, repetitionPenalty } = sampling;
  const isGreedy = temperature === 0;
  const hasPenalty = repetitionPenalty !== 1;
  const refuse = (settings: string, hint: string) =>
    wrongServer(server.url, `gives no log-probs that a run with ${settings} can learn from`, hint, 'rollout.name');
  if (logProbs === 'model' && !isGreedy && temperature !== 1)
    throw refuse(
      `rollout.temperature=${temperature}`,
      'start it with --logprobs-mode processed_logprobs, or set rollout.temperature=1',
    );
  if (logProbs !== 'model' && hasPenalty)
    throw refuse(`rollout.repetition_penalty=${repetitionPenalty}`, 'rollout.repetition_penalty=1');
  if (logProbs === 'sampled' && !isGreedy && isFiltered(sampling))
    throw refuse(
      'rollout.top_k, top_p or min_p',
      'rollout.top_k=-1 rollout.top_p=1 rollout.min_p=0; or, with rollout.temperature=1, start it with --logprobs-mode raw_logprobs',
    );
}

export const isFiltered = ({ topK, topP, minP }: SamplingSettings): boolean => topK > 0 || topP < 1 || minP > 0;

/** The last token of the vocabulary must be known, and the one behind it must not. */
async function requireVocabulary(
  server: SamplingServer,
  api: SamplingApi,
  facts: ServerFacts,
  vocab: number,
  asked: Asked,
): Promise<void> {
  const other = (what: string) =>
    wrongServer(
      server.url,
      `serves ${facts.model} with another vocabulary: ${what}; the run’s model has ${vocab} tokens`,
      'start it with the model of the recipe: model.path',
    );
  const unknown = await refusalOf(api, facts, vocab - 1, asked);
  if (unknown !== undefined) throw other(`it refuses token ${vocab - 1} (${unknown})`);
  if ((await refusalOf(api, facts, vocab, asked)) === undefined) throw other(`it knows token ${vocab}`);
}

/** Why the server refuses a prompt of this token; undefined: it takes it. */
async function refusalOf(
  api: SamplingApi,
  facts: ServerFacts,
  token: number,
  asked: Asked,
): Promise<string | undefined> {
  const sampling = { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
  const sample = { prompt: [token], sampling, maxNewTokens: 1, stopTokens: [], seed: 1, label: 'petrel asks' };
  try {
    for await (const _ of api.sample(sample, facts, asked)) {
      // Whatever it answers: it takes the token.
    }
    return undefined;
  } catch (error) {
    if (error instanceof PetrelError && error.code === 'ServerRefused') return error.message;
    throw error;
  }
}
