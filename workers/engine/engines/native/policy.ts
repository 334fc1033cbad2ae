/** A model of the native engine. */
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
} from '../../../../core/ports/policy.ts';
import type { BlockHash, EngineParameter, StatePart, WeightsFormat } from '../../../../core/parameters.ts';
import { InvalidInputError } from '../../../../core/errors.ts';
import { outputsOfHead } from '../../../../core/ports/policy.ts';
import { partsOf, stateParts } from '../../../../core/records/state-parts.ts';
import { loadWeights } from '../../../../native/model/weights.ts';
import type { NativeStatePart, NativeTrainer } from '../../../../native/index.ts';

function requireLanes(batches: readonly PackedBatch[], { lanes }: Pick<PolicyEngine, 'lanes'>): void {
  if (batches.length > lanes)
    throw new InvalidInputError(`${batches.length} micro-batches at once, for an engine of ${lanes}`);
}

/** Throws InvalidInputError for a part that this engine has not. */
function known(part: string): NativeStatePart {
  const found = stateParts.find((one) => one === part);
  if (found === undefined)
    throw new InvalidInputError(`a native state has the parts ${stateParts.join(', ')}, not ${part}`);
  return found;
}

/** It lives in this process, so it never ends alone. */
export const never = new Promise<void>(() => {});

export class NativePolicy implements PolicyEngine {
  readonly trainer: NativeTrainer;
  readonly lanes = 1;
  readonly exited = never;
  readonly #closed: (policy: NativePolicy) => void;

  /** `closed` is called when its memory is free again. */
  constructor(trainer: NativeTrainer, closed: (policy: NativePolicy) => void = () => {}) {
    this.trainer = trainer;
    this.#closed = closed;
  }

  get head(): HeadKind {
    return this.trainer.spec.head.kind;
  }

  get vocab(): number {
    return this.trainer.spec.vocab;
  }

  get maxPositions(): number {
    return this.trainer.spec.maxPositions;
  }

  get parameters(): readonly EngineParameter[] {
    return this.trainer.parameters;
  }

  get elements(): number {
    return this.trainer.elements;
  }

  get parts(): readonly StatePart[] {
    return partsOf(this.elements, this.trainer.options.trainable);
  }

  get outputs(): readonly OutputName[] {
    return outputsOfHead[this.head];
  }

  get steps(): number {
    return this.trainer.steps;
  }

  async load(source: StateSource, call?: Call): Promise<void> {
    const { trainer } = this;
    if (trainer.options.trainable) trainer.zeroGrads();
    if (source.type === 'pieces') {
      await source.read(({ part, start, end }) => trainer.writer(known(part), start, end));
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
    batches: readonly PackedBatch[],
    options: ForwardOptions<Wanted>,
  ): Promise<readonly ForwardResult<Wanted>[]> {
    requireLanes(batches, this);
    return batches.map((batch) => this.trainer.forward(batch, options));
  }

  async backward(passes: readonly BackwardPass[]): Promise<void> {
    for (const { handle, gradients } of passes) this.trainer.backward(handle, gradients);
  }

  async discard(handles: readonly number[]): Promise<void> {
    for (const handle of handles) this.trainer.discard(handle);
  }

  async step(adamw: AdamW): Promise<StepResult> {
    return this.trainer.step(adamw);
  }

  async zeroGrads(): Promise<void> {
    this.trainer.zeroGrads();
  }

  async blockDigests(part: string, blockBytes: number, hash: BlockHash, call?: Call): Promise<Uint8Array> {
    return this.trainer.blockDigests(known(part), blockBytes, hash, call?.tick);
  }

  async read(part: string, start: number, into: Float32Array | Uint16Array): Promise<void> {
    if (into instanceof Uint16Array) throw new InvalidInputError(`${part} has fp32 values`);
    this.trainer.read(known(part), start, into);
  }

  async publishedDigests(blockBytes: number, call?: Call): Promise<Uint8Array> {
    return this.trainer.publishedDigests(blockBytes, call?.tick);
  }

  async readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    this.trainer.readPublished(format, start, into);
  }

  async close(): Promise<void> {
    this.trainer.close();
    this.#closed(this);
  }
}
