/**
 * A server of the tests in the shape of vLLM's or SGLang's: real HTTP, and real samples of the native engine. It is
 * neither of them. vLLM's shape is that of 0.32 as it answers (tests/engines/vllm-server.test.ts runs the real one);
 * SGLang's is written from its documentation (docs/advanced_features/sglang_for_rl.md, docs/basic_usage) and the source
 * of its routes. It fails as a test wants.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { at } from '../core/at.ts';
import type { DecodedTokens, GenerateRequest, OwningSampler } from '../core/ports/sampler.ts';
import type { SamplingApiName, SamplingServer } from '../core/sampling-server.ts';
import type { SamplingSettings } from '../core/sampling-settings.ts';
import { machineBytes } from '../infra/machine-memory.ts';
import { readConfigJson } from '../models/folder.ts';
import { MemoryPlan } from '../workers/engine/engines/memory-plan.ts';
import { nativeEngines } from '../workers/engine/engines/native/index.ts';

/** What a test may have go wrong. */
export interface ServerFaults {
  /** It answers nothing, and makes no token, before this has resolved. */
  held?: Promise<void>;
  /** It has no calls for new weights. */
  noUpdates?: boolean;
  /** New weights are answered with success, and nothing is loaded. */
  ignoresWeights?: boolean;
  /** At a load, somebody else gives it weights with this label. */
  relabelled?: string;
  /** Loading fails, with this text. */
  loadFails?: string;
  /** Answers have no log-probs, or one that is no number. */
  logProbs?: 'none' | 'null';
  /** It answers so many samples with status 500. */
  failing?: number;
  /** It cuts so many streams in the middle of an event. */
  cut?: number;
  /** It falls silent in the middle of a stream. */
  silent?: boolean;
  /** Tokens of another model: ids beyond the vocabulary. */
  strangeTokens?: boolean;
  /** It takes any token for one of its vocabulary, or none of the upper half. */
  vocabulary?: 'larger' | 'smaller';
  /** Samples end when the length is not reached. */
  endsEarly?: boolean;
}

export interface ServerShape {
  readonly api: SamplingApiName;
  /** vLLM without --enable-scale-out: samples come from /v1/completions. */
  readonly completionsOnly?: boolean;
  /** vLLM's --logprobs-mode. */
  readonly raw?: boolean;
  /** SGLang's --incremental-streaming-output. */
  readonly incremental?: boolean;
  readonly key?: string;
  readonly maxModelLen?: number;
}

/** A request for one sample, in the words of either server. */
interface Wanted {
  readonly prompt: readonly number[];
  readonly sampling: SamplingSettings;
  readonly maxNewTokens: number;
  readonly stopTokens: readonly number[];
  readonly seed: number;
}

interface Chunk {
  readonly token: number;
  readonly logProb: number;
  readonly finish: 'stop' | 'length' | null;
}

type Json = Readonly<Record<string, unknown>>;

export class SamplingServerUnderTest {
  readonly faults: ServerFaults = {};
  readonly shape: ServerShape;
  /** Paths of the requests. */
  readonly seen: string[] = [];
  /** Folders whose weights it was told to load. */
  readonly loaded: string[] = [];
  label = 'default';
  readonly #model: string;
  readonly #server: Server;
  #sampler: OwningSampler | undefined;
  #vocab = 0;
  #port = 0;
  #nextKey = 1;
  /** What wakes the requests that wait, while it is paused. */
  #paused: { readonly until: Promise<void>; readonly wake: () => void } | undefined;

  static async start(model: string, shape: ServerShape): Promise<SamplingServerUnderTest> {
    const server = new SamplingServerUnderTest(model, shape);
    await server.listen();
    return server;
  }

  private constructor(model: string, shape: ServerShape) {
    this.#model = model;
    this.shape = shape;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** It starts with the model's own weights, on the same port as before. */
  async listen(): Promise<void> {
    const engines = nativeEngines(new MemoryPlan(machineBytes()));
    const options = { compute: 'fp32', deterministic: false, threads: 1 } as const;
    this.#sampler = await engines.sampler({ folder: this.#model, head: 'tokens' }, options);
    this.#vocab = (await readConfigJson(this.#model))['vocab_size'] as number;
    this.label = 'default';
    await this.#load(this.#model);
    await this.#sampler.makeRoom({ maxSeqs: 64, maxModelLen: this.#maxModelLen });
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The server as a job names it. */
  named(weightsFolder: string, more: Partial<SamplingServer> = {}): SamplingServer {
    return { api: this.shape.api, url: this.url, weightsFolder, timeoutMs: 60_000, ...more };
  }

  async close(): Promise<void> {
    if (this.#server.listening) {
      this.#server.close();
      this.#server.closeAllConnections();
      await once(this.#server, 'close');
    }
    await this.#sampler?.close();
    this.#sampler = undefined;
  }

  /** Ends all samples, and makes none until it is told to. */
  async pause(): Promise<void> {
    let wake = () => {};
    const until = new Promise<void>((resolve) => (wake = resolve));
    this.#paused ??= { until, wake };
    await this.#sampler?.pause();
  }

  #resume(response: ServerResponse): void {
    this.#paused?.wake();
    this.#paused = undefined;
    json(response, 200, { status: 'resumed' });
  }

  get #maxModelLen(): number {
    return this.shape.maxModelLen ?? 64;
  }

  async #load(folder: string): Promise<void> {
    await this.#sampler?.use({ type: 'folder', folder }, { format: 'F32', hash: 'blake3' });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    this.seen.push(path);
    let text = '';
    for await (const piece of request) text += String(piece);
    const body = (text === '' ? {} : JSON.parse(text)) as Json;
    await this.faults.held;
    // As vLLM's --api-key: only these paths are guarded.
    const isGuarded = /^\/(v1|inference|generate)/.test(path);
    if (this.shape.key !== undefined && isGuarded && request.headers.authorization !== `Bearer ${this.shape.key}`)
      return json(response, 401, { error: 'Unauthorized' });
    const routes = this.shape.api === 'vllm' ? this.#vllm(body) : this.#sglang(body);
    const route = routes[`${request.method} ${path.replace(/\?.*/, '')}`];
    if (route === undefined) return json(response, 404, { detail: 'Not Found' });
    try {
      await route(response);
    } catch (error) {
      if (!response.headersSent) json(response, 500, { error: { message: String(error), code: 500 } });
      else response.destroy();
    }
  }

  #vllm(body: Json): Record<string, (response: ServerResponse) => unknown> {
    const { completionsOnly, raw } = this.shape;
    const sampling = (body['sampling_params'] ?? body) as Json;
    const wanted = (prompt: unknown): Wanted => ({
      prompt: prompt as number[],
      sampling: {
        temperature: sampling['temperature'] as number,
        topK: Math.max(0, sampling['top_k'] as number),
        topP: sampling['top_p'] as number,
        minP: sampling['min_p'] as number,
        repetitionPenalty: sampling['repetition_penalty'] as number,
      },
      maxNewTokens: sampling['max_tokens'] as number,
      stopTokens: sampling['stop_token_ids'] as number[],
      seed: sampling['seed'] as number,
    });
    const chosen = { isModel: raw === true };
    return {
      'GET /v1/models': (response) =>
        json(response, 200, {
          data: [{ id: this.#model, root: this.#model, parent: null, max_model_len: this.#maxModelLen }],
        }),
      'GET /version': (response) => json(response, 200, { version: '0.32.0+test' }),
      'POST /inference/v1/generate': (response) => {
        if (completionsOnly === true) return json(response, 403, { error: { message: 'disabled', code: 403 } });
        if (body['token_ids'] === undefined) return json(response, 422, { detail: 'token_ids is required' });
        return this.#stream(response, wanted(body['token_ids']), chosen, ({ token, logProb, finish }) => ({
          choices: [
            {
              token_ids: [token],
              logprobs: this.#content([{ token_id: token, logprob: logProb }]),
              finish_reason: finish,
              weight_versions: finish === null ? null : [{ version: this.label, start: 0, end: 1 }],
            },
          ],
        }));
      },
      'POST /v1/completions': (response) =>
        this.#stream(response, wanted(body['prompt']), chosen, ({ token, logProb, finish }) => ({
          choices: [
            {
              text: '',
              token_ids: [token],
              logprobs: this.faults.logProbs === 'none' ? null : { token_logprobs: [logProb] },
              finish_reason: finish,
            },
          ],
        })),
      ...(this.faults.noUpdates !== true && {
        'GET /weight_info': (response: ServerResponse) => json(response, 200, { weight_version: this.label }),
        'POST /update_weight_version': (response: ServerResponse) => this.#setLabel(response, body),
        'POST /pause': async (response: ServerResponse) => {
          await this.pause();
          json(response, 200, { status: 'paused' });
        },
        'POST /resume': (response: ServerResponse) => this.#resume(response),
        'POST /reset_prefix_cache': (response: ServerResponse) => json(response, 200, { success: true }),
        'POST /collective_rpc': async (response: ServerResponse) => {
          const { weights_path: folder } = (body['kwargs'] ?? {}) as { weights_path?: string };
          if (body['method'] !== 'reload_weights' || folder === undefined)
            return json(response, 400, { detail: "Missing 'method' in request body" });
          if (this.faults.loadFails !== undefined)
            return json(response, 500, { error: { message: this.faults.loadFails, code: 500 } });
          await this.#take(folder);
          json(response, 200, { results: [null] });
        },
      }),
    };
  }

  #sglang(body: Json): Record<string, (response: ServerResponse) => unknown> {
    const sampling = (body['sampling_params'] ?? {}) as Json;
    const info = (response: ServerResponse) =>
      json(response, 200, { model_path: this.#model, is_generation: true, weight_version: this.label });
    return {
      'GET /v1/models': (response) =>
        json(response, 200, { data: [{ id: this.#model, root: this.#model, max_model_len: this.#maxModelLen }] }),
      'GET /get_model_info': info,
      'GET /server_info': (response) => json(response, 200, { version: '0.5.23+test' }),
      'POST /generate': (response) => {
        const wanted: Wanted = {
          prompt: body['input_ids'] as number[],
          sampling: {
            temperature: sampling['temperature'] as number,
            topK: Math.max(0, sampling['top_k'] as number),
            topP: sampling['top_p'] as number,
            minP: sampling['min_p'] as number,
            repetitionPenalty: sampling['repetition_penalty'] as number,
          },
          maxNewTokens: sampling['max_new_tokens'] as number,
          stopTokens: sampling['stop_token_ids'] as number[],
          seed: sampling['sampling_seed'] as number,
        };
        const made: (readonly [number | null, number, null])[] = [];
        return this.#stream(response, wanted, { isModel: false, isTempered: true }, ({ token, logProb, finish }) => {
          made.push([this.faults.logProbs === 'null' ? null : logProb, token, null]);
          const shown = this.shape.incremental === true ? made.slice(-1) : [...made];
          return {
            output_ids: shown.map(([, id]) => id),
            meta_info: {
              id: 'one',
              completion_tokens: made.length,
              weight_version: this.label,
              finish_reason: finish === null ? null : { type: finish },
              ...(this.faults.logProbs !== 'none' && { output_token_logprobs: shown }),
            },
          };
        });
      },
      ...(this.faults.noUpdates !== true && {
        'POST /update_weight_version': (response: ServerResponse) => this.#setLabel(response, body),
        'POST /pause_generation': async (response: ServerResponse) => {
          await this.pause();
          json(response, 200, { status: 'ok' });
        },
        'POST /continue_generation': (response: ServerResponse) => this.#resume(response),
        'POST /update_weights_from_disk': async (response: ServerResponse) => {
          const folder = body['model_path'] as string | undefined;
          if (folder === undefined) return json(response, 422, { detail: 'model_path is required' });
          const { loadFails } = this.faults;
          if (loadFails !== undefined) return json(response, 400, { success: false, message: loadFails });
          await this.#take(folder);
          json(response, 200, { success: true, message: 'Succeeded to update model weights.' });
        },
      }),
    };
  }

  #setLabel(response: ServerResponse, body: Json): void {
    const label = body['new_version'];
    if (typeof label !== 'string') return json(response, 422, { detail: 'new_version is required' });
    this.label = label;
    json(response, 200, { success: true, new_version: label });
  }

  async #take(folder: string): Promise<void> {
    this.loaded.push(folder);
    this.label = this.faults.relabelled ?? this.label;
    if (this.faults.ignoresWeights !== true) await this.#load(folder);
  }

  #content(content: readonly { token_id: number; logprob: number }[]): object | null {
    return this.faults.logProbs === 'none' ? null : { content };
  }

  /** `isModel`: gives log-probs of the model whatever is sampled; `isTempered`: before filters. */
  async #stream(
    response: ServerResponse,
    wanted: Wanted,
    { isModel, isTempered = false }: { readonly isModel: boolean; readonly isTempered?: boolean },
    eventOf: (chunk: Chunk) => object,
  ): Promise<void> {
    const { faults } = this;
    if ((faults.failing ?? 0) > 0) {
      faults.failing = (faults.failing ?? 0) - 1;
      return json(response, 500, { error: { message: 'CUDA error: an illegal memory access', code: 500 } });
    }
    const most = faults.vocabulary === 'larger' ? this.#vocab + 1 : this.#vocab;
    const known = faults.vocabulary === 'smaller' ? this.#vocab / 2 : most;
    const unknown = wanted.prompt.find((token) => token >= known);
    if (unknown !== undefined) return this.#refuse(response, `Token id ${unknown} is out of vocabulary`);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    await this.#paused?.until;
    const prompt = wanted.prompt.map((token) => Math.min(token, this.#vocab - 1));
    let count = 0;
    const key = this.#nextKey++;
    response.once('close', () => void this.#sampler?.abort(key));
    try {
      for await (const decoded of this.#generate({ ...wanted, prompt }, key))
        for (const chunk of chunksOf(decoded, wanted.sampling, isModel || isTempered)) {
          count += 1;
          const event = `data: ${JSON.stringify(eventOf(this.#spoilt(chunk)))}\n\n`;
          if ((faults.cut ?? 0) > 0 && count === 2) {
            faults.cut = (faults.cut ?? 0) - 1;
            response.write(event.slice(0, event.length / 2), () => response.destroy());
            return;
          }
          if (faults.silent === true && count === 2) return;
          response.write(event);
        }
    } catch {
      // As both servers: what is dropped ends with this reason.
      response.write(`data: ${JSON.stringify(this.#aborted(count))}\n\n`);
    }
    response.end('data: [DONE]\n\n');
  }

  #spoilt(chunk: Chunk): Chunk {
    const { faults } = this;
    return {
      token: faults.strangeTokens === true ? this.#vocab + 3 : chunk.token,
      // As vLLM, for what is no number.
      logProb: faults.logProbs === 'null' ? -9999 : chunk.logProb,
      finish: faults.endsEarly === true ? 'length' : chunk.finish,
    };
  }

  #refuse(response: ServerResponse, message: string): void {
    if (this.shape.api === 'vllm') return json(response, 400, { error: { message, code: 400 } });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ error: { message } })}\n\ndata: [DONE]\n\n`);
  }

  #aborted(count: number): object {
    if (this.shape.api === 'vllm') return { choices: [{ token_ids: [], logprobs: null, finish_reason: 'abort' }] };
    const output_token_logprobs: never[] = [];
    return { meta_info: { completion_tokens: count, output_token_logprobs, finish_reason: { type: 'abort' } } };
  }

  #generate({ prompt, sampling, maxNewTokens, stopTokens, seed }: Wanted, key: number): AsyncIterable<DecodedTokens> {
    const words = [Math.floor(seed / 2 ** 32) >>> 0, seed >>> 0] as const;
    const request: GenerateRequest = {
      prompt: Int32Array.from(prompt),
      samples: [{ key, random: { seed: words, draw: 0, sample: 0, turn: 0 } }],
      ...{ sampling, maxNewTokens },
      stopTokens: Int32Array.from(stopTokens),
    };
    if (this.#sampler === undefined) throw new Error('the server is closed');
    return this.#sampler.generate([request]);
  }
}

/** Gives log-probs as the server does: of the model, or of what filters leave; of a greedy sample the model's. */
function* chunksOf(decoded: DecodedTokens, { temperature }: SamplingSettings, ofModel: boolean): Generator<Chunk> {
  const { tokens, logProbs, samplingLogProbs = logProbs, finish } = decoded;
  const given = ofModel || temperature === 0 ? logProbs : samplingLogProbs;
  for (let i = 0; i < tokens.length; i++)
    yield {
      token: at(tokens, i),
      logProb: at(given, i),
      finish: ([null, 'stop', 'length'] as const)[at(finish, i)] ?? null,
    };
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
