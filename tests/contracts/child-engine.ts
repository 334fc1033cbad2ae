/** A test engine: the native engine in a child process, behind the same ports. It can be killed in mid-call. */
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { ByteSink } from '../../core/byte-sink.ts';
import { InvalidInputError, RetryableError, thrownFromJson } from '../../core/errors.ts';
import type { ModelRef, PolicyOptions, SamplingEngine, TrainingEngine } from '../../core/ports/engines.ts';
import type {
  AdamW,
  BackwardPass,
  Call,
  ForwardOptions,
  ForwardResult,
  HeadKind,
  OutputName,
  PackedBatch,
  PolicyEngine,
  StateSource,
  StepResult,
} from '../../core/ports/policy.ts';
import type { EngineParameter, BlockHash, StatePart, WeightsFormat } from '../../core/parameters.ts';
import type {
  DecodedTokens,
  GenerateRequest,
  NamedWeights,
  OwningSampler,
  Sampler,
  SamplerRoom,
} from '../../core/ports/sampler.ts';
import { packageRoot } from '../../infra/home.ts';
import { arithmeticOf, engineInfo, nativeFacts } from '../../native/index.ts';
import { SteppedStreams } from '../../workers/engine/engines/stepped-streams.ts';
import { publicationRoot } from '../../workers/engine/engines/roots.ts';
import type { FromChild, Piece, Target, ToChild } from './child-engine-protocol.ts';

export interface ChildOptions {
  readonly name: string;
  /** Micro-batches of a call. */
  readonly lanes: number;
  /** States are named by the updates that made them. */
  readonly lineage: boolean;
  /** Each sampler draws its own random bits, and gives no log-probs of the distribution sampled from. */
  readonly seeded: boolean;
  /** Gets each child, so that a test can kill it. */
  readonly onStart: (child: ChildProcess, is: 'policy' | 'sampler') => void;
  /** Gets the micro-batches of each forward pass. */
  readonly onForward: (batches: readonly PackedBatch[]) => void;
  /** Asked at each call that computes: true kills the child in the middle of it. */
  readonly killIn: (call: Computing) => boolean;
}

/** `score`: a forward pass whose activations are not kept. */
export type Computing = 'score' | 'forward' | 'backward' | 'step';
type Observers = Pick<ChildOptions, 'onForward' | 'killIn'>;
const unobserved: Observers = { onForward: () => {}, killIn: () => false };

/** Default: the abilities of the native engine. */
export function childEngines(some: Partial<ChildOptions> = {}): TrainingEngine & SamplingEngine {
  const { name = 'child', lanes = 1, lineage = false, seeded = false } = some;
  const { onStart = () => {}, ...observers } = { ...unobserved, ...some };
  return {
    name,
    facts: () => ({
      ...nativeFacts(),
      name,
      randomness: seeded ? 'seeded' : 'counter',
      ...(lineage && { naming: 'lineage', deterministic: {} }),
    }),
    arithmetic: (profile) => arithmeticOf(profile, engineInfo()),
    async open(model, options) {
      const link = new Link();
      onStart(link.process, 'policy');
      return ChildPolicy.open(link, model, options, lanes, observers);
    },
    async sampler(model, options) {
      const link = new Link();
      onStart(link.process, 'sampler');
      return new OwningChildSampler(await ChildPolicy.open(link, model, { ...options, trainable: false }), seeded);
    },
    ...(!seeded && {
      async samplerOf(policy: PolicyEngine) {
        if (!(policy instanceof ChildPolicy)) throw new Error('the model must live in a child process too');
        return new ChildSampler(policy);
      },
    }),
  };
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly tick: (() => void) | undefined;
}

const exitedError = () => new RetryableError('EngineExited', 'the engine’s process has ended');

class Link {
  readonly process: ChildProcess;
  readonly exited: Promise<void>;
  steps = 0;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #closing = false;
  #dead = false;

  constructor() {
    this.process = fork(join(packageRoot(), 'tests/contracts/child-engine-main.ts'), {
      execArgv: ['--import', join(packageRoot(), 'rewards/host/strip-types.mjs')],
      serialization: 'advanced',
    });
    this.process.on('message', (message: FromChild) => this.#receive(message));
    this.process.on('error', () => {}); // sending to a killed process: `exit` follows
    this.exited = new Promise((resolve) => {
      this.process.once('exit', () => {
        this.#dead = true;
        for (const { reject } of this.#pending.values()) reject(exitedError());
        this.#pending.clear();
        if (!this.#closing) resolve();
      });
    });
  }

  /**
   * Rejects with the signal's reason as soon as it is aborted; the child finishes what it has begun. `kill`: the child
   * is killed in the middle of the call.
   */
  call(
    target: Target,
    method: string,
    args: readonly unknown[],
    { signal, tick }: Call = {},
    kill = false,
  ): Promise<never> {
    signal?.throwIfAborted();
    if (this.#dead || this.#closing) return Promise.reject(exitedError());
    const id = this.#nextId++;
    const settled = new AbortController();
    return new Promise<never>((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true, signal: settled.signal });
      this.#pending.set(id, { resolve: resolve as Pending['resolve'], reject, tick });
      this.process.send({ id, target, method, args, hold: kill } satisfies ToChild);
    }).finally(() => settled.abort());
  }

  async close(): Promise<void> {
    if (this.#dead || this.#closing) return;
    this.#closing = true;
    const gone = new Promise<void>((resolve) => this.process.once('exit', () => resolve()));
    this.process.disconnect();
    await gone;
  }

  #receive(message: FromChild): void {
    const pending = this.#pending.get(message.id);
    switch (message.type) {
      case 'tick':
        return pending?.tick?.();
      case 'halfway':
        return void this.process.kill('SIGKILL');
    }
    this.#pending.delete(message.id);
    if (message.type === 'failed') return pending?.reject(thrownFromJson(message.thrown));
    this.steps = message.steps;
    pending?.resolve(message.result);
  }
}

interface Opened {
  readonly head: HeadKind;
  readonly vocab: number;
  readonly maxPositions: number;
  readonly parameters: readonly EngineParameter[];
  readonly elements: number;
  readonly parts: readonly StatePart[];
  readonly outputs: readonly OutputName[];
}

class ChildPolicy implements PolicyEngine {
  readonly link: Link;
  readonly lanes: number;
  readonly #observers: Observers;
  readonly head: HeadKind;
  readonly vocab: number;
  readonly maxPositions: number;
  readonly parameters: readonly EngineParameter[];
  readonly elements: number;
  readonly parts: readonly StatePart[];
  readonly outputs: readonly OutputName[];
  readonly exited: Promise<void>;

  private constructor(
    link: Link,
    lanes: number,
    observers: Observers,
    { head, vocab, maxPositions, parameters, elements, parts, outputs }: Opened,
  ) {
    this.link = link;
    this.lanes = lanes;
    this.#observers = observers;
    this.head = head;
    this.vocab = vocab;
    this.maxPositions = maxPositions;
    this.parameters = parameters;
    this.elements = elements;
    this.parts = parts;
    this.outputs = outputs;
    this.exited = link.exited;
  }

  static async open(
    link: Link,
    model: ModelRef,
    options: PolicyOptions,
    lanes = 1,
    observers: Observers = unobserved,
  ): Promise<ChildPolicy> {
    try {
      return new ChildPolicy(link, lanes, observers, await link.call('child', 'open', [model, options]));
    } catch (error) {
      await link.close();
      throw error;
    }
  }

  get steps(): number {
    return this.link.steps;
  }

  async load(source: StateSource, call?: Call): Promise<void> {
    if (source.type === 'folder') return this.link.call('child', 'loadFolder', [source.folder], call);
    const sinkOf = (piece: Piece): ByteSink => {
      let begun: Promise<void> | undefined;
      return async (bytes) => {
        begun ??= this.link.call('child', 'piece', [piece]);
        await begun;
        await this.link.call('child', 'bytes', [bytes]);
        call?.tick?.();
      };
    };
    const { read, ...facts } = source;
    await this.link.call('child', 'beginLoad', [facts]);
    if (source.type === 'pieces') await source.read(sinkOf);
    else await source.read((start, end) => sinkOf({ start, end }));
    await this.link.call('child', 'endLoad', []);
  }

  async forward<Wanted extends OutputName>(
    batches: readonly PackedBatch[],
    options: ForwardOptions<Wanted>,
    call?: Call,
  ): Promise<readonly ForwardResult<Wanted>[]> {
    if (batches.length > this.lanes)
      throw new InvalidInputError(`${batches.length} micro-batches at once, for an engine of ${this.lanes}`);
    this.#observers.onForward(batches);
    const kill = this.#observers.killIn(options.keep ? 'forward' : 'score');
    return this.link.call('child', 'forward', [batches, options], call, kill);
  }

  backward(passes: readonly BackwardPass[], call?: Call): Promise<void> {
    return this.link.call('child', 'backward', [passes], call, this.#observers.killIn('backward'));
  }

  discard(handles: readonly number[]): Promise<void> {
    return this.link.call('policy', 'discard', [handles]);
  }

  step(adamw: AdamW): Promise<StepResult> {
    return this.link.call('child', 'step', [adamw], {}, this.#observers.killIn('step'));
  }

  zeroGrads(): Promise<void> {
    return this.link.call('policy', 'zeroGrads', []);
  }

  blockDigests(part: string, blockBytes: number, hash: BlockHash, call?: Call): Promise<Uint8Array> {
    return this.link.call('child', 'blockDigests', [part, blockBytes, hash], call);
  }

  async read(part: string, start: number, into: Float32Array | Uint16Array): Promise<void> {
    const values: Float32Array = await this.link.call('child', 'read', [part, start, into.length]);
    into.set(values);
  }

  publishedDigests(blockBytes: number, call?: Call): Promise<Uint8Array> {
    return this.link.call('child', 'publishedDigests', [blockBytes], call);
  }

  async readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    const bytes: Uint8Array = await this.link.call('child', 'readPublished', [format, start, into.length]);
    into.set(bytes);
  }

  close(): Promise<void> {
    return this.link.close();
  }
}

class ChildSampler implements Sampler {
  readonly exited: Promise<void>;
  readonly policy: ChildPolicy;
  readonly #streams: SteppedStreams;

  constructor(policy: ChildPolicy, seeded = false) {
    const { link } = policy;
    this.policy = policy;
    const own = seeded ? randomInt(2 ** 31) : 0;
    this.exited = policy.exited;
    this.#streams = new SteppedStreams({
      submit: (request) => link.call('sampler', 'submit', [seeded ? reseeded(request, own) : request]),
      step: async () => {
        const { samplingLogProbs, ...decoded }: Required<DecodedTokens> = await link.call('sampler', 'step', []);
        return seeded ? { ...decoded, columns: routes(decoded) } : { ...decoded, samplingLogProbs };
      },
      abort: (key) => link.call('sampler', 'abort', [key]),
      reset: () => link.call('sampler', 'reset', []),
    });
  }

  makeRoom(room: SamplerRoom): Promise<void> {
    return this.policy.link.call('child', 'sample', [room]);
  }

  generate(requests: readonly GenerateRequest[]): AsyncIterable<DecodedTokens> {
    return this.#streams.generate(requests);
  }

  abort(key: number): Promise<void> {
    return this.#streams.abort(key);
  }

  pause(): Promise<void> {
    return this.#streams.end();
  }

  async resume(): Promise<void> {}

  async close(): Promise<void> {
    await this.policy.link.call('child', 'endSampling', []);
  }
}

/** Two numbers of each token: what a router of a mixture of experts would give. */
const routes = ({ tokens }: Pick<DecodedTokens, 'tokens'>) => ({
  routes: { data: Int32Array.from([...tokens].flatMap((token) => [token, token + 1])), width: 2 },
});

/** Random bits of its own: no other process has them. */
const reseeded = (request: GenerateRequest, own: number): GenerateRequest => ({
  ...request,
  samples: request.samples.map((sample) => ({ ...sample, random: { ...sample.random, seed: [own, sample.key] } })),
});

class OwningChildSampler extends ChildSampler implements OwningSampler {
  get parameters(): readonly EngineParameter[] {
    return this.policy.parameters;
  }

  async use(source: StateSource, { format, hash }: NamedWeights, call?: Call): Promise<string> {
    await this.policy.load(source, call);
    return publicationRoot(this.policy, format, hash, call);
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    return this.policy.readPublished(format, start, into);
  }

  override close(): Promise<void> {
    return this.policy.close();
  }
}
