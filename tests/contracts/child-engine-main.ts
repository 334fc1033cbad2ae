/** The native engine as a process of its own. One message at a time, in order, as one caller would call it. */
import type { ByteSink } from '../../core/byte-sink.ts';
import type { DecoderSpec } from '../../core/decoder-spec.ts';
import { thrownToJson } from '../../core/errors.ts';
import type {
  BlockHash,
  EngineOptions,
  PolicyEngine,
  StatePart,
  StatePiece,
  StateSource,
  WeightsFormat,
} from '../../core/ports/policy.ts';
import type { Sampler } from '../../core/ports/sampler.ts';
import type { SamplerRoom } from '../../core/ports/engines.ts';
import { nativeEngines } from '../../workers/engine/native-engines.ts';
import type { FromChild, Piece, SourceFacts, ToChild } from './child-engine-protocol.ts';

let policy: PolicyEngine | undefined;
let sampler: Sampler | undefined;
let turn: Promise<void> = Promise.resolve();
let tick: () => void = () => {};

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
  async open(spec: DecoderSpec, options: EngineOptions & { trainable: boolean }) {
    policy = await nativeEngines.policy(spec, options);
    return { parameters: policy.parameters, elements: policy.elements, outputs: policy.outputs };
  },
  async sample(room: SamplerRoom, cacheBytes: number) {
    sampler = await nativeEngines.sampler(opened(), room, cacheBytes);
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
  async blockDigests(part: StatePart, blockBytes: number, hash: BlockHash) {
    return opened().blockDigests(part, blockBytes, hash, { tick });
  },
  async read(part: StatePart, start: number, length: number) {
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

async function serve({ id, target, method, args }: ToChild): Promise<void> {
  tick = () => tell({ type: 'tick', id });
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
