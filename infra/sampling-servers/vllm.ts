/**
 * vLLM's server. Samples: POST /inference/v1/generate, tokens in and out, where it was started with --enable-scale-out,
 * else POST /v1/completions. Weights: the routes that VLLM_SERVER_DEV_MODE=1 opens.
 */
import { z } from 'zod';
import { PetrelError, RetryableError } from '../../core/errors.ts';
import type { SamplingSettings } from '../../core/sampling-settings.ts';
import type { Asked, ServerConnection } from './connection.ts';
import { serverFailed, wrongServer } from './faults.ts';
import { loadingLabel, unknownLabel } from './sampling-api.ts';
import type { AskedSample, SampledTokens, SamplingApi, ServerFacts } from './sampling-api.ts';

const models = z.object({
  data: z
    .array(
      z.object({
        id: z.string(),
        root: z.string().nullish(),
        parent: z.string().nullish(),
        max_model_len: z.int().nullish(),
      }),
    )
    .min(1),
});
const version = z.object({ version: z.string() });
const weightInfo = z.object({ weight_version: z.string() });

const finish = z.string().nullish();
/** A chunk of /inference/v1/generate. */
const tokensChunk = z.object({
  choices: z.array(
    z.object({
      token_ids: z.array(z.int()).nullish(),
      logprobs: z.object({ content: z.array(z.object({ token_id: z.int(), logprob: z.number() })) }).nullish(),
      finish_reason: finish,
      weight_versions: z.array(z.object({ version: z.string() })).nullish(),
    }),
  ),
});
/** A chunk of /v1/completions with `return_token_ids`. */
const completionChunk = z.object({
  choices: z.array(
    z.object({
      token_ids: z.array(z.int()).nullish(),
      logprobs: z.object({ token_logprobs: z.array(z.number().nullable()) }).nullish(),
      finish_reason: finish,
    }),
  ),
});

const devMode =
  'start it with VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --enable-scale-out --logprobs-mode processed_logprobs';
const tokensPath = '/inference/v1/generate';
/** What vLLM writes in the place of a log-prob that is not finite. */
const notFinite = -9999;
/** A server reads all weights from a disk. */
const loadMs = 1_800_000;

export class VllmApi implements SamplingApi {
  readonly #connection: ServerConnection;
  #takesTokens = true;

  constructor(connection: ServerConnection) {
    this.#connection = connection;
  }

  async describe(asked: Asked = {}): Promise<ServerFacts | undefined> {
    const served = models.safeParse(await this.#connection.get('GET', '/v1/models', undefined, asked));
    const found = version.safeParse((await this.#connection.ask('GET', '/version', undefined, asked)).json);
    const base = served.data?.data.find(({ parent }) => parent === null || parent === undefined);
    if (base === undefined || !found.success || typeof base.max_model_len !== 'number')
      throw this.#wrong(
        'is no vLLM server',
        'rollout.name=sglang, if it is one of SGLang; else the address of another',
      );
    await this.#requireUpdates(asked);
    if ((await this.label(asked)).startsWith(loadingLabel)) return undefined;
    this.#takesTokens = await this.#has('POST', tokensPath, asked);
    const model = { model: base.id };
    return {
      ...model,
      version: `vllm ${found.data.version}`,
      root: base.root ?? base.id,
      maxModelLen: base.max_model_len,
      logProbs: await this.#logProbsOf(model, asked),
    };
  }

  async wake(asked: Asked = {}): Promise<void> {
    await this.#resume(asked);
    await this.setLabel(unknownLabel, asked);
  }

  async label(asked: Asked = {}): Promise<string> {
    const answer = weightInfo.safeParse(await this.#connection.get('GET', '/weight_info', undefined, asked));
    if (!answer.success) throw this.#connection.nonsense('/weight_info without weight_version');
    return answer.data.weight_version;
  }

  async setLabel(label: string, asked: Asked = {}): Promise<void> {
    await this.#connection.get('POST', '/update_weight_version', { new_version: label }, asked);
  }

  async load(folder: string, asked: Asked = {}): Promise<void> {
    const long = { ...asked, silenceMs: loadMs };
    const reload = { method: 'reload_weights', kwargs: { weights_path: folder } };
    await this.#connection.get('POST', '/pause?mode=abort', undefined, long);
    try {
      await this.#connection.get('POST', '/collective_rpc', reload, long).catch((error: unknown) => {
        throw isOfLoad(error) ? this.#unreadable(folder, error) : error;
      });
      await this.#connection.get('POST', '/reset_prefix_cache', undefined, asked);
    } finally {
      // One that answers this is no dead server: what failed is the load.
      await this.#resume(asked);
    }
  }

  #unreadable(folder: string, { message }: PetrelError): Error {
    return wrongServer(
      this.#connection.server.url,
      `cannot load the weights in ${folder}: ${message}`,
      'start it with the model of the recipe, where it sees rollout.weights_dir under the same path',
      'rollout.weights_dir',
    );
  }

  async #resume(asked: Asked): Promise<void> {
    await this.#connection.get('POST', '/resume', undefined, asked);
  }

  async *sample(
    sample: AskedSample,
    { model }: Pick<ServerFacts, 'model'>,
    asked: Asked = {},
  ): AsyncGenerator<SampledTokens> {
    const params = paramsOf(sample);
    const common = { model, stream: true, cache_salt: sample.label };
    const [path, body] = this.#takesTokens
      ? [
          tokensPath,
          { ...common, token_ids: sample.prompt, sampling_params: { ...params, logprobs: 0, detokenize: false } },
        ]
      : ['/v1/completions', { ...common, ...params, prompt: sample.prompt, logprobs: 1, return_token_ids: true }];
    for await (const event of this.#connection.events(path, body, asked)) {
      this.#throwIfError(event);
      const made = this.#takesTokens ? this.#ofTokens(event) : this.#ofCompletion(event);
      if (made !== undefined) yield made;
    }
  }

  /** The last chunk may have nothing but the usage. */
  #ofTokens(event: unknown): SampledTokens | undefined {
    const chunk = tokensChunk.safeParse(event);
    if (!chunk.success) throw this.#noLogProbs(event);
    const [choice] = chunk.data.choices;
    if (choice === undefined) return undefined;
    const { token_ids: tokens, logprobs, weight_versions: versions } = choice;
    return {
      ...this.#tokensOf(
        tokens,
        logprobs?.content.map(({ logprob }) => logprob),
        event,
      ),
      ...finished(choice.finish_reason),
      ...(versions && { labels: versions.map((span) => span.version) }),
    };
  }

  #ofCompletion(event: unknown): SampledTokens | undefined {
    const chunk = completionChunk.safeParse(event);
    if (!chunk.success) throw this.#noLogProbs(event);
    const [choice] = chunk.data.choices;
    if (choice === undefined) return undefined;
    const { token_ids: tokens, logprobs, finish_reason: reason } = choice;
    return {
      ...this.#tokensOf(
        tokens,
        logprobs?.token_logprobs.map((value) => value ?? notFinite),
        event,
      ),
      ...finished(reason),
    };
  }

  #tokensOf(
    tokens: readonly number[] | null | undefined,
    logProbs: readonly number[] | undefined,
    event: unknown,
  ): Pick<SampledTokens, 'tokens' | 'logProbs'> {
    if ((tokens ?? []).length === 0) return { tokens: [], logProbs: [] };
    if (tokens?.length !== logProbs?.length) throw this.#noLogProbs(event);
    if (logProbs?.some((value) => value <= notFinite) === true)
      throw serverFailed(this.#connection.server.url, 'the log-prob of a sampled token is no number');
    return { tokens: tokens ?? [], logProbs: logProbs ?? [] };
  }

  #noLogProbs(event: unknown): Error {
    return this.#connection.nonsense(
      `a chunk without token ids and log-probs: ${this.#connection.shown(JSON.stringify(event))}`,
      `petrel needs both of each token: ${devMode}`,
    );
  }

  /** vLLM gives an error that comes late as an event. */
  #throwIfError(event: unknown): void {
    const { error } = event as { readonly error?: { readonly message?: string; readonly code?: number } };
    if (error === undefined) return;
    throw this.#connection.fault({ status: error.code ?? 500, text: error.message ?? '', json: undefined });
  }

  /** What kind of log-probs: with one token to choose from, its log-prob after filters is 0. */
  async #logProbsOf(model: Pick<ServerFacts, 'model'>, asked: Asked): Promise<ServerFacts['logProbs']> {
    const sampling: SamplingSettings = { temperature: 1, topK: 1, topP: 1, minP: 0, repetitionPenalty: 1 };
    const sample = { prompt: [1], sampling, maxNewTokens: 4, stopTokens: [], seed: 1, label: 'petrel asks' };
    let isSure = true;
    for await (const { logProbs } of this.sample(sample, model, asked))
      isSure &&= logProbs.every((value) => Math.abs(value) < 1e-4);
    return isSure ? 'sampled' : 'model';
  }

  async #requireUpdates(asked: Asked): Promise<void> {
    for (const [method, path] of [
      ['GET', '/weight_info'],
      ['POST', '/collective_rpc'],
      ['POST', '/update_weight_version'],
    ] as const)
      if (!(await this.#has(method, path, asked)))
        throw this.#wrong(`cannot take new weights: it has no ${path}`, devMode);
  }

  /** Is there such a call? An empty request is refused by one that is there. */
  async #has(method: 'GET' | 'POST', path: string, asked: Asked): Promise<boolean> {
    const { status, text } = await this.#connection.ask(method, path, method === 'POST' ? {} : undefined, asked);
    if (status === 401) throw this.#connection.fault({ status, text, json: undefined });
    // 403: it was not switched on.
    return status !== 404 && status !== 405 && status !== 403;
  }

  #wrong(what: string, hint: string): Error {
    return wrongServer(this.#connection.server.url, what, hint);
  }
}

/** Greedy samples have no filters: the likeliest token is left by each. */
function paramsOf({ sampling, maxNewTokens, stopTokens, seed }: AskedSample): object {
  const { temperature, topK, topP, minP, repetitionPenalty } = sampling;
  const isGreedy = temperature === 0;
  return {
    temperature,
    top_k: isGreedy || topK <= 0 ? 0 : topK,
    top_p: isGreedy ? 1 : Math.min(1, topP),
    min_p: isGreedy ? 0 : minP,
    repetition_penalty: repetitionPenalty,
    seed,
    max_tokens: maxNewTokens,
    stop_token_ids: stopTokens,
    // Only the stop tokens of the request count.
    ignore_eos: true,
  };
}

/** vLLM answers 500 for whatever goes wrong in a load. */
const isOfLoad = (error: unknown): error is PetrelError =>
  error instanceof PetrelError && error.code === 'ServerFailed';

function finished(reason: string | null | undefined): Pick<SampledTokens, 'finish'> {
  if (reason === null || reason === undefined) return {};
  if (reason === 'stop') return { finish: 1 };
  if (reason === 'length') return { finish: 2 };
  if (reason === 'abort') return { finish: 'abort' };
  throw new RetryableError('ServerFailed', `a sample ended with ${reason}`, { hint: 'see the log of the server' });
}
