/** A sampler that is a server at `rollout.url`: a sample is a request, and new weights lie in a folder that it sees. */
import { createHash } from 'node:crypto';
import { InvalidInputError, PetrelError, PreemptedError } from '../../../../core/errors.ts';
import type { EngineParameter, WeightsFormat } from '../../../../core/parameters.ts';
import type { Call, StateSource } from '../../../../core/ports/policy.ts';
import type {
  DecodedTokens,
  GenerateRequest,
  GenerateSample,
  NamedWeights,
  OwningSampler,
  SamplerRoom,
} from '../../../../core/ports/sampler.ts';
import type { SamplingServer } from '../../../../core/sampling-server.ts';
import type { SamplingSettings } from '../../../../core/sampling-settings.ts';
import { serverFailed, serverLost, serverNonsense, serverShared } from '../../../../infra/sampling-servers/faults.ts';
import { isFiltered, requireContext, requireReported } from '../../../../infra/sampling-servers/requirements.ts';
import type {
  AskedSample,
  SampledTokens,
  SamplingApi,
  ServerFacts,
} from '../../../../infra/sampling-servers/sampling-api.ts';
import { SampleStreams } from './sample-streams.ts';
import type { MakeSample } from './sample-streams.ts';
import { ServerWeights } from './server-weights.ts';
import type { ServerWeightsPorts } from './server-weights.ts';

export class HttpSampler implements OwningSampler {
  readonly exited: Promise<void>;
  readonly parameters: readonly EngineParameter[];
  /** Kind, version and model of the server, for records. */
  readonly sampledBy: string;
  readonly #server: SamplingServer;
  readonly #api: SamplingApi;
  readonly #facts: ServerFacts;
  readonly #vocab: number;
  readonly #weights: ServerWeights;
  readonly #streams: SampleStreams;
  #exit: () => void = () => {};
  /** Label of the weights that the server must have. */
  #label = '';
  #room: SamplerRoom = { maxSeqs: 1, maxModelLen: 1 };

  constructor(ports: ServerWeightsPorts) {
    const { server, api, facts, vocab, parameters } = ports;
    this.exited = new Promise((resolve) => (this.#exit = resolve));
    this.parameters = parameters;
    this.sampledBy = `${facts.version}, model ${facts.model}`;
    this.#server = server;
    this.#api = api;
    this.#facts = facts;
    this.#vocab = vocab;
    this.#weights = new ServerWeights(ports);
    this.#streams = new SampleStreams((error) => isOfServer(error) && this.#discard());
  }

  async use(source: StateSource, named: NamedWeights, call?: Call): Promise<string> {
    this.#streams.endAll();
    const digest = await this.#weights.use(source, named, call);
    this.#label = ServerWeights.labelOf(named.format, digest);
    return digest;
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    return this.#weights.readPublished(format, start, into);
  }

  async makeRoom(room: SamplerRoom): Promise<void> {
    this.#streams.endAll();
    try {
      requireContext(this.#server, this.#facts, room.maxModelLen);
    } catch (error) {
      this.#discard();
      throw error;
    }
    this.#room = room;
    this.#streams.places = room.maxSeqs;
  }

  async *generate(requests: readonly GenerateRequest[]): AsyncGenerator<DecodedTokens> {
    const samples = new Map<number, MakeSample>();
    for (const request of requests) {
      this.#requireFits(request);
      requireReported(this.#server, this.#facts, request.sampling);
      for (const sample of request.samples)
        samples.set(sample.key, (give, signal) => this.#make(request, sample, give, signal));
    }
    yield* this.#streams.generate(samples);
  }

  async abort(key: number): Promise<void> {
    this.#streams.abort(key);
  }

  async pause(): Promise<void> {
    this.#streams.endAll();
  }

  async resume(): Promise<void> {}

  async close(): Promise<void> {
    this.#streams.endAll();
    await this.#weights.close();
  }

  /** The next job asks the server again what it is, and gives it the weights. */
  #discard(): void {
    this.#exit();
    this.#weights.close().catch((error: unknown) => console.error(`weights of a server: ${String(error)}`));
  }

  #requireFits({ prompt, maxNewTokens }: GenerateRequest): void {
    const whole = prompt.length + maxNewTokens;
    const most = this.#room.maxModelLen;
    if (whole > most)
      throw new InvalidInputError(`a prompt and response of ${whole} tokens; there is room for ${most}`, {
        hint: 'shorten data.max_prompt_length or data.max_response_length',
      });
  }

  async #make(
    request: GenerateRequest,
    { key, random, prefix = new Int32Array() }: GenerateSample,
    give: (tokens: DecodedTokens) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { prompt, sampling, maxNewTokens, stopTokens } = request;
    const label = this.#label;
    const asked: AskedSample = {
      prompt: [...prompt, ...prefix],
      sampling,
      maxNewTokens: maxNewTokens - prefix.length,
      stopTokens: [...stopTokens],
      seed: seedOf(random),
      label,
    };
    let count = 0;
    // The end of a sample may come behind its last token.
    let held: SampledTokens | undefined;
    try {
      for await (const made of this.#api.sample(asked, this.#facts, { signal })) {
        if (made.finish === 'abort') throw aborted();
        // Who loads other weights ends the samples that have begun, so what began with these weights has no others.
        if (made.labels !== undefined || made.finish !== undefined || held === undefined)
          await this.#requireOwnWeights(made, label, signal);
        if (made.tokens.length === 0 && held !== undefined)
          held = { ...held, ...(made.finish && { finish: made.finish }) };
        else {
          if (held !== undefined) give(decoded(key, held, sampling));
          held = made;
        }
        count += made.tokens.length;
        this.#requireSound(held, count, asked);
      }
    } catch (error) {
      throw error instanceof PetrelError && error.code === 'ServerDown'
        ? serverLost(this.#server.url, error.message)
        : error;
    }
    if (held?.finish === undefined) throw serverFailed(this.#server.url, `a sample has no end after ${count} tokens`);
    give(decoded(key, held, sampling));
  }

  /** Tokens of the model, as many as were asked for, with log-probs that are such, and the end where it belongs. */
  #requireSound({ tokens, logProbs, finish }: SampledTokens, count: number, asked: AskedSample): void {
    const nonsense = (what: string) => serverNonsense(this.#server.url, what);
    const strange = tokens.find((token) => token < 0 || token >= this.#vocab);
    if (strange !== undefined) throw nonsense(`the token ${strange}; the model has ${this.#vocab}`);
    const odd = logProbs.find((value) => !Number.isFinite(value) || value > 1e-3);
    if (odd !== undefined) throw nonsense(`${odd} as the log-prob of a token`);
    if (count > asked.maxNewTokens || (finish === 2 && count !== asked.maxNewTokens))
      throw nonsense(`a sample of ${count} tokens where ${asked.maxNewTokens} were asked for`);
    if (finish === 1 && !asked.stopTokens.includes(tokens.at(-1) ?? -1))
      throw nonsense('a sample that stops at no stop token');
    if (finish !== undefined && tokens.length === 0) throw nonsense('the end of a sample without its last token');
  }

  /** Throws RetryableError `ServerShared` for tokens that other weights have made. */
  async #requireOwnWeights(made: SampledTokens, label: string, signal: AbortSignal): Promise<void> {
    const labels = made.labels ?? [await this.#api.label({ signal })];
    const other = labels.find((one) => one !== label);
    if (other !== undefined)
      throw serverShared(this.#server.url, `sampled with the weights ${other} in place of ${label}`);
  }
}

/** Errors of one sample that say that the server is gone, or has other weights: they are so for all samples. */
const ofServer: ReadonlySet<string> = new Set(['EngineExited', 'ServerShared', 'WeightsMoved']);
const isOfServer = (error: Error): boolean => error instanceof PetrelError && ofServer.has(error.code);

/** Someone has ended all samples of the server, as new weights do. */
const aborted = () => new PreemptedError('WeightsMoved', 'the server has dropped the sample: its weights change');

/** A number of 53 bits of its own for each sample: of its seed, draw, sample and turn. */
function seedOf({ seed, draw, sample, turn }: GenerateSample['random']): number {
  const bytes = createHash('sha256')
    .update([...seed, draw, sample, turn].join(','))
    .digest();
  return Number(bytes.readBigUInt64LE(0) >> 11n);
}

/** A greedy sample is certain of its tokens. With filters the server gives one of the two log-probs. */
function decoded(key: number, { tokens, logProbs, finish }: SampledTokens, sampling: SamplingSettings): DecodedTokens {
  const isGreedy = sampling.temperature === 0;
  const own = Float32Array.from(logProbs, (value) => Math.min(0, value));
  const isKnown = isGreedy || !isFiltered(sampling);
  const ends = new Uint8Array(tokens.length);
  if (finish === 1 || finish === 2) ends[tokens.length - 1] = finish;
  return {
    keys: new Int32Array(tokens.length).fill(key),
    tokens: Int32Array.from(tokens),
    logProbs: own,
    ...(isKnown && { samplingLogProbs: isGreedy ? new Float32Array(tokens.length) : own }),
    finish: ends,
  };
}
