/** A model of the torch engine: a group of ranks behind the port. */
import { lanesOf } from '../../../../core/division.ts';
import { at } from '../../../../core/at.ts';
import { InvalidInputError } from '../../../../core/errors.ts';
import { checkBatch, checkForward } from '../../../../core/ports/check-batch.ts';
import type { ModelRef, PolicyOptions } from '../../../../core/ports/engines.ts';
import type {
  AdamW,
  BackwardPass,
  Call,
  DifferentiableOutput,
  ForwardOptions,
  ForwardResult,
  HeadKind,
  OutputArrays,
  OutputName,
  PackedBatch,
  PolicyEngine,
  ScoringModel,
  StateCopy,
  StateSource,
  StepResult,
} from '../../../../core/ports/policy.ts';
import type { BlockHash, EngineParameter, StatePart, WeightsFormat } from '../../../../core/parameters.ts';
import { flatBatch } from '../flat-batch.ts';
import type { Place } from './frames.ts';
import { Layout } from './layout.ts';
import type { RankGroup } from './rank-group.ts';
import { RankState } from './rank-state.ts';
import type { NamedShape } from './rank-state.ts';

/** What a rank says of an opened model. */
interface Opened {
  readonly vocab: number;
  readonly maxPositions: number;
  readonly labels: number;
  readonly parameters: readonly NamedShape[];
  readonly outputs: readonly OutputName[];
  /** The folder is an adapter's. */
  readonly adapter: boolean;
  /** [layers with experts, experts of each]; null without experts. */
  readonly experts: readonly [layers: number, experts: number] | null;
}

const dtypeOf: Readonly<Record<OutputName, 'F32' | 'I32'>> = {
  logProbs: 'F32',
  entropy: 'F32',
  sumPiSquared: 'F32',
  logits: 'F32',
  topTokens: 'I32',
  topLogProbs: 'F32',
  values: 'F32',
  scores: 'F32',
  expertTokens: 'I32',
  routerLoss: 'F32',
};

export class TorchPolicy implements PolicyEngine {
  readonly head: HeadKind;
  readonly vocab: number;
  readonly maxPositions: number;
  readonly outputs: readonly OutputName[];
  readonly experts?: number;
  readonly lanes: number;
  readonly exited: Promise<void>;
  readonly base?: ScoringModel;
  readonly #group: RankGroup;
  readonly #state: RankState;
  readonly #labels: number;
  readonly #expertLayers: number;
  /** Maps a kept forward pass to the number of rows of each of its lanes. */
  readonly #kept = new Map<number, ReadonlyMap<number, number>>();
  #nextPass = 1;

  private constructor(group: RankGroup, model: ModelRef, options: PolicyOptions, opened: Opened) {
    this.#group = group;
    this.head = model.head;
    this.vocab = opened.vocab;
    this.maxPositions = opened.maxPositions;
    this.#state = new RankState(group, opened.parameters, options);
    this.outputs = opened.outputs;
    this.#labels = opened.labels;
    const [layers, experts] = opened.experts ?? [0];
    this.#expertLayers = layers;
    if (experts !== undefined) this.experts = experts;
    this.lanes = lanesOf(group.ranks, options.division);
    this.exited = group.exited;
    if (!opened.adapter) return;
    const { head, vocab, maxPositions, outputs, lanes } = this;
    const forward: ScoringModel['forward'] = (batches, options, call) => this.#forward(batches, options, call, true);
    this.base = { head, vocab, maxPositions, outputs, lanes, forward };
  }

  /** Takes the group over: it ends with the model. */
  static async open(group: RankGroup, model: ModelRef, options: PolicyOptions): Promise<TorchPolicy> {
    const { compute, trainable } = options;
    try {
      const args = { ...model, compute, trainable, samples: false };
      return new TorchPolicy(group, model, options, await group.turn(() => group.call<Opened>('open', args)));
    } catch (error) {
      await group.close();
      throw error;
    }
  }

  get parameters(): readonly EngineParameter[] {
    return this.#state.parameters;
  }

  get elements(): number {
    return this.#state.elements;
  }

  get parts(): readonly StatePart[] {
    return this.#state.parts;
  }

  get steps(): number {
    return this.#state.steps;
  }

  async load(source: StateSource, call?: Call): Promise<void> {
    this.#kept.clear();
    await this.#state.load(source, call);
  }

  forward<Wanted extends OutputName>(
    batches: readonly PackedBatch[],
    options: ForwardOptions<Wanted>,
    call?: Call,
  ): Promise<readonly ForwardResult<Wanted>[]> {
    return this.#forward(batches, options, call, false);
  }

  /** `base`: with the adapter off. */
  async #forward<Wanted extends OutputName>(
    batches: readonly PackedBatch[],
    options: ForwardOptions<Wanted>,
    call: Call | undefined,
    base: boolean,
  ): Promise<readonly ForwardResult<Wanted>[]> {
    if (base && options.keep) throw new InvalidInputError('the base of an adapter does not learn');
    if (batches.length > this.lanes)
      throw new InvalidInputError(`${batches.length} micro-batches at once, for an engine of ${this.lanes}`);
    for (const batch of batches) {
      checkBatch(batch, this.vocab);
      checkForward(this, batch, options);
    }
    return this.#group.turn(async (tick) => {
      const layout = new Layout();
      const lanes = batches.map((batch) => this.#lane(flatBatch(batch), options, layout));
      this.#group.memory.grow(layout.bytes);
      for (const { arrays } of lanes) for (const [place, array] of arrays) this.#group.memory.write(place.at, array);
      const pass = this.#nextPass++;
      const { temperature, wants, topK, keep } = options;
      const places = Array.from({ length: this.lanes }, (_, rank) => lanes[rank]?.places ?? null);
      await this.#group.call('forward', { pass, temperature, wants, topK, keep, base, lanes: places }, tick);
      if (keep && call?.signal?.aborted)
        await this.#group.call('discard', { pass }); // nobody gets its handles
      else if (keep) this.#kept.set(pass, new Map(batches.map((b, lane) => [lane, b.positions_P.length])));
      return lanes.map(({ places: { outputs } }, lane) => ({
        handle: keep ? this.#handle(pass, lane) : 0,
        outputs: Object.fromEntries(
          options.wants.map((name) => [name, this.#output(outputs[name] as Place)]),
        ) as unknown as Pick<OutputArrays, Wanted>,
      }));
    }, call);
  }

  async backward(passes: readonly BackwardPass[], call?: Call): Promise<void> {
    const known = passes.map(({ handle, gradients }) => ({ ...this.#known(handle), gradients }));
    const pass = at(known, 0).pass;
    if (known.some((one) => one.pass !== pass))
      throw new InvalidInputError('the gradients of one forward call go backward together');
    await this.#group.turn(async (tick) => {
      const layout = new Layout();
      const lanes: (Record<string, Place> | null)[] = Array.from({ length: this.lanes }, () => null);
      const arrays: [Place, Float32Array][] = [];
      for (const { lane, rows, gradients } of known) {
        const places: Record<string, Place> = {};
        for (const [name, array] of Object.entries(gradients) as [DifferentiableOutput, Float32Array][]) {
          const shape = this.#shape(name, rows, 0);
          const place = layout.place('F32', ...shape);
          if (array.length !== sizeOf(shape))
            throw new InvalidInputError(`the gradients of ${name} have ${array.length} values for ${rows} positions`);
          places[name] = place;
          arrays.push([place, array]);
        }
        lanes[lane] = places;
      }
      this.#group.memory.grow(layout.bytes);
      for (const [place, array] of arrays) this.#group.memory.write(place.at, array);
      this.#kept.delete(pass);
      await this.#group.call('backward', { pass, lanes }, tick);
    }, call);
  }

  async discard(handles: readonly number[]): Promise<void> {
    const passes = new Set(handles.map((handle) => this.#known(handle).pass));
    for (const pass of passes) {
      this.#kept.delete(pass);
      await this.#group.exclusive('discard', { pass });
    }
  }

  async step(adamw: AdamW): Promise<StepResult> {
    type Stepped = { readonly gradNorm: number | string; readonly taken: boolean };
    const { gradNorm, taken } = await this.#group.exclusive<Stepped>('step', adamw);
    if (taken) this.#state.steps++;
    return { gradNorm: Number(gradNorm), taken };
  }

  async zeroGrads(): Promise<void> {
    await this.#group.exclusive('zeroGrads', {});
  }

  blockDigests(part: string, blockBytes: number, hash: BlockHash, call?: Call): Promise<Uint8Array> {
    return this.#state.blockDigests(part, blockBytes, hash, call);
  }

  read(part: string, start: number, into: Float32Array | Uint16Array): Promise<void> {
    return this.#state.read(part, start, into);
  }

  publishedDigests(blockBytes: number, call?: Call): Promise<Uint8Array> {
    return this.#state.publishedDigests(blockBytes, call);
  }

  copy(call?: Call): Promise<StateCopy | undefined> {
    return this.#state.copy(call);
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    return this.#state.readPublished(format, start, into);
  }

  close(): Promise<void> {
    return this.#group.close();
  }

  #handle(pass: number, lane: number): number {
    return pass * this.lanes + lane;
  }

  #known(handle: number): { readonly pass: number; readonly lane: number; readonly rows: number } {
    const [pass, lane] = [Math.floor(handle / this.lanes), handle % this.lanes];
    const rows = this.#kept.get(pass)?.get(lane);
    if (rows === undefined) throw new InvalidInputError(`there is no forward pass ${handle}`);
    return { pass, lane, rows };
  }

  #shape(name: OutputName, rows: number, topK: number): number[] {
    if (name === 'logits') return [rows, this.vocab];
    if (name === 'scores') return [rows, this.#labels];
    if (name === 'expertTokens') return [this.#expertLayers, this.experts ?? 0];
    if (name === 'routerLoss') return [1];
    return name === 'topTokens' || name === 'topLogProbs' ? [rows, topK] : [rows];
  }

  #lane(batch: PackedBatch, { wants, topK = 0 }: ForwardOptions<OutputName>, layout: Layout) {
    const arrays: [Place, Int32Array][] = [];
    const given = (array: Int32Array) => {
      const place = layout.place('I32', array.length);
      arrays.push([place, array]);
      return place;
    };
    const { tokens_N, cuSeqlens, positions_P, targets_P } = batch;
    const outputs: Partial<Record<OutputName, Place>> = {};
    for (const name of wants)
      outputs[name] = layout.place(dtypeOf[name], ...this.#shape(name, positions_P.length, topK));
    return {
      arrays,
      places: {
        tokens: given(tokens_N),
        cuSeqlens: given(cuSeqlens),
        positions: given(positions_P),
        ...(targets_P && { targets: given(targets_P) }),
        outputs,
      },
    };
  }

  #output(place: Place): Float32Array | Int32Array {
    const count = sizeOf(place.shape);
    const array = place.dtype === 'I32' ? new Int32Array(count) : new Float32Array(count);
    this.#group.memory.read(place.at, array);
    return array;
  }
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
