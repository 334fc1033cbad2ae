/**
 * SGLang's server: its own interface, POST /generate, and its calls for weights. Written from its documentation
 * (docs/advanced_features/sglang_for_rl.md) and from its source (srt/entrypoints/http_server.py).
 */
import { z } from 'zod';
import { RetryableError } from '../../core/errors.ts';
import type { Asked, ServerConnection } from './connection.ts';
import { wrongServer } from './faults.ts';
import { loadingLabel, unknownLabel } from './sampling-api.ts';
import type { AskedSample, SampledTokens, SamplingApi, ServerFacts } from './sampling-api.ts';

const models = z.object({ data: z.array(z.object({ id: z.string(), max_model_len: z.int().nullish() })).min(1) });
const modelInfo = z.object({ model_path: z.string(), weight_version: z.string() });
const serverInfo = z.object({ version: z.string() });
const updated = z.object({ success: z.boolean(), message: z.string().default('') });

const event = z.object({
  meta_info: z.object({
    completion_tokens: z.int().nonnegative(),
    /** [log-prob, token id, text] of each token. */
    output_token_logprobs: z.array(z.tuple([z.number(), z.int()], z.unknown())),
    finish_reason: z.object({ type: z.string(), message: z.string().nullish() }).nullish(),
    weight_version: z.string().nullish(),
  }),
});

/** The names of two calls in newer servers, and in older ones. */
const infoPaths = ['/model_info', '/get_model_info'] as const;
const serverPaths = ['/server_info', '/get_server_info'] as const;
const updatePath = '/update_weights_from_disk';
/** A server reads all weights from a disk. */
const loadMs = 1_800_000;

export class SglangApi implements SamplingApi {
  readonly #connection: ServerConnection;

  constructor(connection: ServerConnection) {
    this.#connection = connection;
  }

  async describe(asked: Asked = {}): Promise<ServerFacts | undefined> {
    const served = models.safeParse(await this.#connection.get('GET', '/v1/models', undefined, asked));
    const info = modelInfo.safeParse(await this.#first(infoPaths, asked));
    const server = serverInfo.safeParse(await this.#first(serverPaths, asked));
    const model = served.data?.data[0];
    if (model === undefined || typeof model.max_model_len !== 'number' || !info.success || !server.success)
      throw this.#wrong('is no SGLang server that says its weight_version', 'rollout.name=vllm, if it is one of vLLM');
    await this.#requireUpdates(asked);
    if (info.data.weight_version.startsWith(loadingLabel)) return undefined;
    return {
      version: `sglang ${server.data.version}`,
      model: model.id,
      root: info.data.model_path,
      maxModelLen: model.max_model_len,
      logProbs: 'tempered',
    };
  }

  async wake(asked: Asked = {}): Promise<void> {
    await this.#resume(asked);
    await this.setLabel(unknownLabel, asked);
  }

  async label(asked: Asked = {}): Promise<string> {
    const info = modelInfo.safeParse(await this.#first(infoPaths, asked));
    if (!info.success) throw this.#connection.nonsense('/model_info without weight_version');
    return info.data.weight_version;
  }

  async setLabel(label: string, asked: Asked = {}): Promise<void> {
    await this.#connection.get('POST', '/update_weight_version', { new_version: label }, asked);
  }

  async load(folder: string, asked: Asked = {}): Promise<void> {
    const long = { ...asked, silenceMs: loadMs };
    await this.#connection.get('POST', '/pause_generation', { mode: 'abort' }, long);
    const body = { model_path: folder, abort_all_requests: true, flush_cache: true };
    try {
      await this.#update(folder, body, long);
    } finally {
      await this.#resume(asked);
    }
  }

  async #update(folder: string, body: object, asked: Asked): Promise<void> {
    // A refusal is an answer of status 400 that says why.
    const answer = await this.#connection.ask('POST', updatePath, body, asked);
    const outcome = updated.safeParse(answer.json);
    if (!outcome.success) throw this.#connection.fault(answer);
    if (!outcome.data.success)
      throw wrongServer(
        this.#connection.server.url,
        `cannot load the weights in ${folder}: ${this.#connection.shown(outcome.data.message)}`,
        'start it with the model of the recipe, where it sees rollout.weights_dir under the same path',
        'rollout.weights_dir',
      );
  }

  async #resume(asked: Asked): Promise<void> {
    await this.#connection.get('POST', '/continue_generation', {}, asked);
  }

  async *sample(sample: AskedSample, _: unknown, asked: Asked = {}): AsyncGenerator<SampledTokens> {
    const body = {
      input_ids: sample.prompt,
      sampling_params: paramsOf(sample),
      return_logprob: true,
      // Only of the tokens that are sampled.
      logprob_start_len: -1,
      stream: true,
    };
    let seen = 0;
    for await (const one of this.#connection.events('/generate', body, asked)) {
      this.#throwIfError(one);
      const parsed = event.safeParse(one);
      if (!parsed.success)
        throw this.#connection.nonsense(
          `an event without token ids and log-probs: ${this.#connection.shown(JSON.stringify(one))}`,
          'petrel needs the log-prob of each sampled token, in meta_info.output_token_logprobs',
        );
      const { completion_tokens: count, output_token_logprobs: all, finish_reason: reason } = parsed.data.meta_info;
      // All tokens of the sample, or those of this event: servers differ, by --incremental-streaming-output.
      const fresh = count - seen;
      if (fresh < 0 || all.length < fresh)
        throw this.#connection.nonsense(`${all.length} log-probs for ${fresh} new tokens`);
      const made = fresh === 0 ? [] : all.slice(-fresh);
      seen = count;
      const { weight_version: label } = parsed.data.meta_info;
      yield {
        tokens: made.map(([, token]) => token),
        logProbs: made.map(([logProb]) => logProb),
        ...finished(reason),
        ...(typeof label === 'string' && { labels: [label] }),
      };
    }
  }

  /** An error that comes late is an event. */
  #throwIfError(one: unknown): void {
    const { error } = one as { readonly error?: { readonly message?: string } };
    if (error === undefined) return;
    throw this.#connection.fault({ status: 400, text: error.message ?? '', json: undefined });
  }

  /** The answer of the first of these calls that the server has. */
  async #first(paths: readonly string[], asked: Asked): Promise<unknown> {
    for (const path of paths) {
      const answer = await this.#connection.ask('GET', path, undefined, asked);
      if (answer.status === 404) continue;
      if (answer.status >= 300) throw this.#connection.fault(answer);
      return answer.json;
    }
    return undefined;
  }

  /** Are the calls there? An empty request is refused by one that is there. */
  async #requireUpdates(asked: Asked): Promise<void> {
    for (const path of [updatePath, '/update_weight_version']) {
      const { status, text } = await this.#connection.ask('POST', path, {}, asked);
      if (status === 401 || status === 403) throw this.#connection.fault({ status, text, json: undefined });
      if (status === 404 || status === 405)
        throw this.#wrong(`cannot take new weights: it has no ${path}`, 'a newer SGLang, 0.5.4 or later');
    }
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
    top_k: isGreedy || topK <= 0 ? -1 : topK,
    top_p: isGreedy ? 1 : Math.min(1, topP),
    min_p: isGreedy ? 0 : minP,
    repetition_penalty: repetitionPenalty,
    // Read where the server runs with --enable-deterministic-inference.
    sampling_seed: seed % 2 ** 31,
    max_new_tokens: maxNewTokens,
    stop_token_ids: stopTokens,
    // Only the stop tokens of the request count.
    ignore_eos: true,
    skip_special_tokens: false,
    no_stop_trim: true,
  };
}

function finished(reason: { readonly type: string; readonly message?: string | null | undefined } | null | undefined) {
  if (reason === null || reason === undefined) return {};
  if (reason.type === 'stop') return { finish: 1 as const };
  if (reason.type === 'length') return { finish: 2 as const };
  if (reason.type === 'abort') return { finish: 'abort' as const };
  throw new RetryableError('ServerFailed', `a sample ended with ${reason.type}: ${reason.message ?? ''}`, {
    hint: 'see the log of the server',
  });
}
