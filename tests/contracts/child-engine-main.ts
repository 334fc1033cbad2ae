/** The native engine as a process of its own. One message at a time, in order, as one caller would call it. */
import type { ByteSink } from '../../core/byte-sink.ts';
import { thrownToJson } from '../../core/errors.ts';
import { forwardOne } from '../../core/ports/one-lane.ts';
import type {
  AdamW,
  BackwardPass,
  ForwardOptions,
  OutputName,
  PackedBatch,
  PolicyEngine,
  StatePiece,
  StateSource,
} from '../../core/ports/policy.ts';
import type { BlockHash, WeightsFormat } from '../../core/parameters.ts';
import type { SamplerRoom } from '../../core/ports/sampler.ts';
import type { ModelRef, PolicyOptions } from '../../core/ports/engines.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import type { NativeGenerator } from '../../native/index.ts';
import { generatorWith, nativeEngines } from '../../workers/engine/engines/native/index.ts';
import type { NativePolicy } from '../../workers/engine/engines/native/policy.ts';
import { MemoryPlan } from '../../workers/engine/engines/memory-plan.ts';
import type { FromChild, Piece, SourceFacts, ToChild } from './child-engine-protocol.ts';

const engines = nativeEngines(new MemoryPlan(machineBytes()));
let policy: PolicyEngine | undefined;
let sampler: NativeGenerator | undefined;
let turn: Promise<void> = Promise.resolve();
let tick: () => void = () => {};
/** Called in the middle of a forward pass, a backward pass and a step. */
let halfway: () => Promise<void> = async () => {};

/** A load of pieces: the parent sends them one by one, and then the end. */
let loaded: Promise<void> = Promise.resolve();
let endLoad: () => void = () => {};
let sinkOf: (piece: Piece) => ByteSink = () => () => {};
let sink: ByteSink | undefined;

const opened = (): PolicyEngine => {
  if (policy === undefined) throw new Error('no model is open');
  return policy;
};

function sourceOf(facts: SourceFacts, read: (sinks: typeof sinkOf) => Promise<void>): StateSource {
  const { type } = facts;
  if (type === 'pieces')
    return { type, steps: facts.steps, read: (sinks) => read((piece) => sinks(piece as StatePiece)) };
  return { type, format: facts.format, read: (sinks) => read(({ start, end }) => sinks(start, end)) };
}

const child: Record<string, (...args: never[]) => Promise<unknown>> = {
  async open(model: ModelRef, options: PolicyOptions) {
    policy = await engines.open(model, options);
    const { head, vocab, maxPositions, parameters, elements, parts, outputs } = policy;
    return { head, vocab, maxPositions, parameters, elements, parts, outputs };
  },
  /** The lanes of a call, one after the other. */
  async forward(batches: readonly PackedBatch[], options: ForwardOptions<OutputName>) {
    const results = [];
    for (const batch of batches) {
      results.push(await forwardOne(opened(), batch, options, { tick }));
      await halfway();
    }
    return results;
  },
  async backward(passes: readonly BackwardPass[]) {
    for (const pass of passes) {
      await opened().backward([pass], { tick });
      await halfway();
    }
  },
  async step(adamw: AdamW) {
    const stepped = opened().step(adamw);
    await halfway();
    return stepped;
  },
  async sample(room: SamplerRoom) {
    sampler?.close();
    sampler = generatorWith(opened() as NativePolicy, room);
  },
  async endSampling() {
    sampler?.close();
    sampler = undefined;
  },
  async loadFolder(folder: string) {
    await opened().load({ type: 'folder', folder }, { tick });
  },
  async beginLoad(facts: SourceFacts) {
    await new Promise<void>((begun, failed) => {
      const ended = new Promise<void>((resolve) => (endLoad = resolve));
      const read = async (sinks: typeof sinkOf) => {
        sinkOf = sinks;
        begun();
        await ended;
      };
      loaded = opened().load(sourceOf(facts, read));
      loaded.catch(failed);
    });
  },
  async piece(piece: Piece) {
    sink = sinkOf(piece);
  },
  async bytes(bytes: Uint8Array) {
    await sink?.(bytes);
  },
  async endLoad() {
    endLoad();
    await loaded;
  },
  async blockDigests(part: string, blockBytes: number, hash: BlockHash) {
    return opened().blockDigests(part, blockBytes, hash, { tick });
  },
  async read(part: string, start: number, length: number) {
    const into = new Float32Array(length);
    await opened().read(part, start, into);
    return into;
  },
  async publishedDigests(blockBytes: number) {
    return opened().publishedDigests(blockBytes, { tick });
  },
  async readPublished(format: WeightsFormat, start: number, length: number) {
    const into = new Uint8Array(length);
    await opened().readPublished(format, start, into);
    return into;
  },
};

const tell = (message: FromChild) => process.send?.(message);

async function serve({ id, target, method, args, hold }: ToChild): Promise<void> {
  tick = () => tell({ type: 'tick', id });
  halfway = async () => {
    if (!hold) return;
    tell({ type: 'halfway', id });
    await new Promise(() => {});
  };
  try {
    const object = (target === 'child' ? child : target === 'policy' ? policy : sampler) as unknown as typeof child;
    const result = await object[method]?.(...(args as never[]));
    tell({ type: 'done', id, result, steps: policy?.steps ?? 0 });
  } catch (error) {
    tell({ type: 'failed', id, thrown: thrownToJson(error) });
  }
}

process.on('message', (message: ToChild) => void (turn = turn.then(() => serve(message))));
process.on('disconnect', () => process.exit(0));
