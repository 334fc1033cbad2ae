/**
 * The model of a process that only samples: its weights are not those of a policy that is trained here. New weights of
 * the same model replace the old ones in place. They come from a process that has them in memory, else from the store.
 */
import { damage } from '../../core/damage.ts';
import { errorToJson, InvalidInputError, RetryableError, saysNothingOfData } from '../../core/errors.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { PolicyEngine } from '../../core/ports/policy.ts';
import type { Store } from '../../core/ports/store.ts';
import { blockHashOf } from '../../core/records/block-hash.ts';
import { keys } from '../../core/records/keys.ts';
import { publishedBytes } from '../../core/records/publications.ts';
import type { Publication } from '../../core/records/publications.ts';
import { weightsManifest } from '../../core/records/schema.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import { streamBlob } from '../../infra/store/blobs.ts';
import { readRecord } from '../../infra/store/records.ts';
import { readShard } from '../../models/checkpoint.ts';
import { readFromHolders } from './holders.ts';
import { byStart, loadRounded } from './published-shards.ts';
import { SharedPlace } from './shared-place.ts';
import { publicationRoot } from './state.ts';
import { GrowingWeights } from './growing-weights.ts';
import type { ReadableWeights } from './growing-weights.ts';

/** Weights of a run, and whom to ask for them. */
export interface WantedWeights {
  readonly runId: RunId;
  readonly store: string;
  /** Position of the log whose policy has these weights. At 0 they are the model's. */
  readonly iteration: number;
  readonly model: Digest;
  readonly profile: NumericProfile;
  readonly weights: Digest;
  /** What to load: every publication of the weights gives the same samples. */
  readonly publication: Publication;
  /** Processes that have them, or get them before this one. */
  readonly holders: readonly string[];
  /** Secret of the run; absent: nobody is asked. */
  readonly secret?: string | undefined;
}

export interface RolloutModelPorts {
  readonly store: (url: string) => Promise<Store>;
  /** An engine for the model, whose weights are undefined. */
  readonly open: (wanted: WantedWeights) => Promise<PolicyEngine>;
  /** Loads the weights of the model's folder. */
  readonly loadBase: (engine: PolicyEngine, wanted: WantedWeights) => Promise<void>;
  /** Ends what samples from the engine. */
  readonly endSampling: (engine: PolicyEngine) => Promise<void>;
  readonly close: (engine: PolicyEngine) => Promise<void>;
  readonly tick: () => void;
  readonly log: (line: string) => void;
}

/** Bytes of weights that were read since the last question, by where they came from. */
export interface WeightsRead {
  readonly holders: number;
  readonly store: number;
}

/** Two processes learn of new weights at about the same time, and the first to ask may be early. */
const soonMs = 1_000;

const kindOf = ({ compute, deterministic }: NumericProfile): string => `${compute} ${deterministic}`;
const keyOf = ({ weights, profile }: WantedWeights): string => `${weights} ${kindOf(profile)}`;

export class RolloutModel {
  readonly #ports: RolloutModelPorts;
  readonly #place = new SharedPlace<PolicyEngine>();
  /** What the engine in the place is for. */
  #held: (Pick<WantedWeights, 'runId' | 'model'> & { readonly kind: string }) | undefined;
  /** The model's weights, from the moment at which they began to come. */
  #growing: { readonly runId: RunId; readonly digest: Digest; readonly from: GrowingWeights } | undefined;
  readonly #onBegin = new Set<() => void>();
  #read = { holders: 0, store: 0 };

  constructor(ports: RolloutModelPorts) {
    this.#ports = ports;
  }

  /** Works with an engine that has exactly these weights. */
  use<T>(wanted: WantedWeights, work: (engine: PolicyEngine) => Promise<T>): Promise<T> {
    return this.#place.use(keyOf(wanted), (before) => this.#make(wanted, before), work);
  }

  /** Gets weights that a job will want soon, if the place has other ones of the run and nothing to do. */
  async prefetch(wanted: WantedWeights): Promise<void> {
    const { runId, model, profile } = wanted;
    const isNext = this.#held?.runId === runId && this.#held.model === model && this.#held.kind === kindOf(profile);
    if (isNext && this.#place.isIdle) await this.use(wanted, async () => {});
  }

  forget(engine: PolicyEngine): void {
    this.#place.forget(engine);
    this.#growing?.from.fail();
  }

  /** The publication that is in memory or on its way into it; resolves with undefined when it is not soon. */
  async soonReadable(runId: string, publication: string): Promise<ReadableWeights | undefined> {
    const here = () => {
      const found = this.#growing;
      return found?.runId === runId && found.digest === publication ? found.from : undefined;
    };
    if (here() !== undefined) return here();
    let listener = () => {};
    const signal = AbortSignal.timeout(soonMs);
    const come = new Promise<void>((resolve) => {
      listener = () => here() !== undefined && resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#onBegin.add(listener);
    await come;
    this.#onBegin.delete(listener);
    return here();
  }

  takeRead(): WeightsRead {
    const read = this.#read;
    this.#read = { holders: 0, store: 0 };
    return read;
  }

  async #make(wanted: WantedWeights, before: PolicyEngine | undefined): Promise<PolicyEngine> {
    const growing = this.#begin(wanted);
    const engine = await this.#emptied(wanted, before);
    this.#held = { runId: wanted.runId, model: wanted.model, kind: kindOf(wanted.profile) };
    growing.begin(engine);
    try {
      await this.#load(wanted, engine);
      return engine;
    } catch (error) {
      this.#growing?.from.fail();
      this.#growing = undefined;
      this.#held = undefined;
      await this.#ports.close(engine);
      throw error;
    }
  }

  #begin({ runId, publication: { format, digest } }: WantedWeights): GrowingWeights {
    this.#growing?.from.fail();
    const from = new GrowingWeights(format);
    this.#growing = { runId, digest, from };
    for (const tell of this.#onBegin) tell();
    return from;
  }

  /** The engine of before, if it is of the same model; else a new one, after that one is closed. */
  async #emptied(wanted: WantedWeights, before: PolicyEngine | undefined): Promise<PolicyEngine> {
    const isSame = this.#held?.model === wanted.model && this.#held.kind === kindOf(wanted.profile);
    if (before !== undefined && isSame) {
      await this.#ports.endSampling(before);
      return before;
    }
    if (before !== undefined) await this.#ports.close(before);
    return this.#ports.open(wanted);
  }

  async #load(wanted: WantedWeights, engine: PolicyEngine): Promise<void> {
    if (await this.#fromHolders(wanted, engine)) return;
    try {
      await this.#fromStore(wanted, engine);
      const { digest } = wanted.publication;
      const found = await this.#rootOf(wanted, engine);
      if (found !== digest)
        throw new InvalidInputError(`weights ${digest.slice(0, 12)} expected, ${found.slice(0, 12)} loaded`);
    } catch (error) {
      if (error instanceof RetryableError || saysNothingOfData(error)) throw error; // the weights may be intact
      if (wanted.iteration === 0) throw damage('DamagedModel', `models/${wanted.model}`, errorToJson(error).message);
      throw new RetryableError('WeightsDamaged', `WeightsDamaged: ${errorToJson(error).message}`);
    }
    this.#growing?.from.complete();
  }

  /** Resolves with whether the engine has the weights now. */
  async #fromHolders(wanted: WantedWeights, engine: PolicyEngine): Promise<boolean> {
    const { runId, publication, holders, secret, iteration } = wanted;
    if (iteration === 0 || secret === undefined || holders.length === 0) return false;
    const { format, digest } = publication;
    const bytes = publishedBytes(engine.parameters, format);
    const growing = this.#begin(wanted);
    growing.begin(engine);
    let complete = false;
    await engine.load({
      type: 'published',
      format,
      read: async (sinkOf) => {
        const sink = sinkOf(0, bytes);
        complete = await readFromHolders(holders, { runId, publication: digest, secret, bytes }, async (piece) => {
          await sink(piece);
          this.#read.holders += piece.byteLength;
          this.#ports.tick();
          growing.advance(piece.byteLength);
        });
      },
    });
    if (complete && (await this.#rootOf(wanted, engine)) === digest) {
      growing.complete();
      return true;
    }
    if (complete)
      this.#ports.log(
        `${runId}: weights ${digest.slice(0, 12)} from ${holders.join(' or ')} do not match their digest`,
      );
    this.#begin(wanted).begin(engine); // who reads along gets an error
    return false;
  }

  async #fromStore(wanted: WantedWeights, engine: PolicyEngine): Promise<void> {
    const { runId, publication, iteration } = wanted;
    const { format, digest } = publication;
    const store = await this.#ports.store(wanted.store);
    const manifest = await readRecord(store, keys.weights(runId, digest), weightsManifest);
    if (manifest === undefined) {
      if (iteration === 0) return this.#ports.loadBase(engine, wanted);
      throw new RetryableError('WeightsMissing', `WeightsMissing: ${digest.slice(0, 12)} are not published yet`);
    }
    if (format === 'BF16')
      return loadRounded(engine, { store, runId, manifest: manifest.record }, (bytes) => {
        this.#read.store += bytes;
        this.#growing?.from.advance(bytes);
      });
    await engine.load({
      type: 'pieces',
      steps: 0,
      read: async (sinkOf) => {
        for (const shard of byStart(manifest.record.shards))
          await readShard(shard, streamBlob(store, runId, shard.blob), (piece) => {
            const sink = sinkOf(piece);
            return async (bytes) => {
              await sink(bytes);
              this.#read.store += bytes.byteLength;
              this.#growing?.from.advance(bytes.byteLength);
            };
          });
      },
    });
  }

  #rootOf({ profile, publication }: WantedWeights, engine: PolicyEngine): Promise<Digest> {
    return publicationRoot(engine, publication.format, blockHashOf(profile), { tick: this.#ports.tick });
  }
}
