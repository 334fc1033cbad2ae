/** The native engine behind the ports of core/ports/. Each call is done when its promise is returned. */
import type { DecoderSpec } from '../../core/decoder-spec.ts';
import { cacheBytes, modelMemory, pageBytes, pagesOfSequence } from '../../core/engine-memory.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { Engines, SamplerRoom } from '../../core/ports/engines.ts';
import { outputsOfHead } from '../../core/ports/policy.ts';
import type {
  AdamW,
  Call,
  EngineParameter,
  ForwardOptions,
  ForwardResult,
  OutputGradients,
  OutputName,
  PackedBatch,
  PolicyEngine,
  BlockHash,
  StatePart,
  StateSource,
  StepResult,
  WeightsFormat,
} from '../../core/ports/policy.ts';
import type { DecodedTokens, GenerateRequest, Sampler } from '../../core/ports/sampler.ts';
import { paced } from './paced-sampler.ts';
import { loadWeights } from '../../models/weights.ts';
import { createGenerator, createTrainer } from '../../native/index.ts';
import type { NativeGenerator, NativeTrainer } from '../../native/index.ts';

export const nativeEngines: Engines = {
  modelBytes: (spec, options) => Object.values(modelMemory(spec, options)).reduce((sum, bytes) => sum + bytes, 0),
  cacheBytes: (spec, { compute }, room) => cacheBytes(spec, compute, room),
  policy: async (spec, options) => new NativePolicy(createTrainer(spec, options)),
  sampler: async (policy, room, bytes) => paced(new NativeSampler(generatorOf(policy, room, bytes))),
};

function generatorOf(policy: PolicyEngine, room: SamplerRoom, bytes: number): NativeGenerator {
  if (policy instanceof NativePolicy) {
    const { spec, options } = policy.trainer;
    const pages = Math.floor(
      Math.min(bytes, cacheBytes(spec, options.compute, room)) / pageBytes(spec, options.compute),
    );
    return createGenerator(policy.trainer, { ...room, kvPages: Math.max(pages, pagesOfSequence(room)) });
  }
  throw new InvalidInputError('the native sampler reads the weights of a native model, got one of another engine');
}

/** It lives in this process, so it never ends alone. */
const never = new Promise<void>(() => {});

export class NativePolicy implements PolicyEngine {
  readonly trainer: NativeTrainer;
  readonly exited = never;

  constructor(trainer: NativeTrainer) {
    this.trainer = trainer;
  }

  get spec(): DecoderSpec {
    return this.trainer.spec;
  }

  get parameters(): readonly EngineParameter[] {
    return this.trainer.parameters;
  }

  get elements(): number {
    return this.trainer.elements;
  }

  get outputs(): readonly OutputName[] {
    return outputsOfHead[this.trainer.spec.head.kind];
  }

  get steps(): number {
    return this.trainer.steps;
  }

  async load(source: StateSource, call?: Call): Promise<void> {
    const { trainer } = this;
    if (trainer.options.trainable) trainer.zeroGrads();
    if (source.type === 'pieces') {
      await source.read(({ part, start, end }) => trainer.writer(part, start, end));
      trainer.steps = source.steps;
      return trainer.weightsChanged();
    }
    if (source.type === 'published') {
      await source.read((start, end) => trainer.publishedWriter(source.format, start, end));
      return trainer.weightsChanged();
    }
    if (trainer.options.trainable) for (const part of ['m', 'v'] as const) trainer.zero(part);
    trainer.steps = 0;
    if (source.newHead) trainer.zero('weights');
    await loadWeights(source.folder, trainer, { ...(call?.tick && { onBytes: call.tick }), newHead: source.newHead });
  }

  async forward<Wanted extends OutputName>(
    batch: PackedBatch,
    options: ForwardOptions<Wanted>,
  ): Promise<ForwardResult<Wanted>> {
    return this.trainer.forward(batch, options);
  }

  async backward(handle: number, gradients: OutputGradients): Promise<void> {
    this.trainer.backward(handle, gradients);
  }

  async discard(handle: number): Promise<void> {
    this.trainer.discard(handle);
  }

  async step(adamw: AdamW): Promise<StepResult> {
    return this.trainer.step(adamw);
  }

  async zeroGrads(): Promise<void> {
    this.trainer.zeroGrads();
  }

  async blockDigests(part: StatePart, blockBytes: number, hash: BlockHash, call?: Call): Promise<Uint8Array> {
    return this.trainer.blockDigests(part, blockBytes, hash, call?.tick);
  }

  async read(part: StatePart, start: number, into: Float32Array): Promise<void> {
    this.trainer.read(part, start, into);
  }

  async publishedDigests(blockBytes: number, call?: Call): Promise<Uint8Array> {
    return this.trainer.publishedDigests(blockBytes, call?.tick);
  }

  async readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    this.trainer.readPublished(format, start, into);
  }

  async close(): Promise<void> {
    this.trainer.close();
  }
}

class NativeSampler implements Sampler {
  readonly randomness = 'counter';
  readonly exited = never;
  readonly #generator: NativeGenerator;

  constructor(generator: NativeGenerator) {
    this.#generator = generator;
  }

  async submit(request: GenerateRequest): Promise<void> {
    this.#generator.submit(request);
  }

  async step(): Promise<DecodedTokens> {
    return this.#generator.step();
  }

  async abort(key: number): Promise<void> {
    this.#generator.abort(key);
  }

  async reset(): Promise<void> {
    this.#generator.reset();
  }

  async close(): Promise<void> {
    this.#generator.close();
  }
}
