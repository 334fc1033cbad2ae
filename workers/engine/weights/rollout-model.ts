/**
 * The sampler of a process that has weights of its own: they are not those of a policy that is trained here, or its
 * engine cannot read that one in place. New weights of the same model replace the old ones. They come from a policy of
 * this process, from a process that has them in memory, else from the store.
 */
import { beginsAsModel } from '../../../core/division.ts';
import { damage } from '../../../core/records/damage.ts';
import { errorToJson, InvalidInputError, RetryableError, saysNothingOfData } from '../../../core/errors.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import type { StateSource } from '../../../core/ports/policy.ts';
import type { OwningSampler } from '../../../core/ports/sampler.ts';
import type { Store } from '../../../core/ports/store.ts';
import type { SamplingServer } from '../../../core/sampling-server.ts';
import { blockHashOf } from '../../../core/records/block-hash.ts';
import { keys } from '../../../core/records/keys.ts';
import { publishedBytes } from '../../../core/records/publications.ts';
import type { Publication } from '../../../core/records/publications.ts';
import { weightsManifest } from '../../../core/records/schema.ts';
import type { NumericProfile } from '../../../core/records/schema.ts';
import { kindOf } from '../engines/profile.ts';
import { isServerFault } from '../../../infra/sampling-servers/faults.ts';
import { streamBlob } from '../../../log/objects/blobs.ts';
import { readRecord } from '../../../log/objects/records.ts';
import { readShard, weightsAlone } from '../../../models/checkpoint.ts';
import { readFromHolders } from './holders.ts';
import { byStart, roundedSource } from './published-shards.ts';
import { SharedPlace } from './shared-place.ts';
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
  /** Name of the engine that samples. */
  readonly sampler: string;
  /** The server that samples, where one does. */
  readonly server?: SamplingServer;
  /** Devices over which the sampler divides its model, if it does. */
  readonly tensorParallel?: number;
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
  /** A sampler for the model, whose weights are undefined. */
  readonly open: (wanted: WantedWeights) => Promise<OwningSampler>;
  /** The weights, if they are those of a policy of this process. */
  readonly policy: (wanted: WantedWeights) => ReadableWeights | undefined;
  /** The weights of the model's folder. */
  readonly base: (wanted: WantedWeights) => Promise<StateSource>;
  /** Drops what is being sampled. */
  readonly interrupt: (sampler: OwningSampler) => Promise<void>;
  readonly close: (sampler: OwningSampler) => Promise<void>;
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

/** Bytes that are copied at a time from a policy of this process. */
const pieceBytes = 8 << 20;

/** What decides which sampler it is, apart from the weights. */
type Kind = Pick<WantedWeights, 'model' | 'sampler' | 'server' | 'tensorParallel' | 'profile'>;

const samplerKind = ({ sampler, server, tensorParallel = 1, profile }: Omit<Kind, 'model'>): string =>
  [sampler, kindOf(profile), tensorParallel, ...(server === undefined ? [] : [JSON.stringify(server)])].join(' ');
const keyOf = (wanted: WantedWeights): string => `${wanted.weights} ${samplerKind(wanted)}`;

const isOfSameModel = (held: Kind, wanted: Kind): boolean =>
  held.model === wanted.model && samplerKind(held) === samplerKind(wanted);

export class RolloutModel {
  readonly #ports: RolloutModelPorts;
  readonly #place = new SharedPlace<OwningSampler>();
  /** What the sampler in the place is for. */
  #held: (Kind & Pick<WantedWeights, 'runId'>) | undefined;
  /** The model's weights, from the moment at which they began to come. */
  #growing: { readonly runId: RunId; readonly digest: Digest; readonly from: GrowingWeights } | undefined;
  readonly #onBegin = new Set<() => void>();
  #read = { holders: 0, store: 0 };

  constructor(ports: RolloutModelPorts) {
    this.#ports = ports;
  }

  /** Works with a sampler that has exactly these weights. */
  use<T>(wanted: WantedWeights, work: (sampler: OwningSampler) => Promise<T>): Promise<T> {
    return this.#place.use(keyOf(wanted), (before) => this.#make(wanted, before), work);
  }

  /** Gets weights that a job will want soon, if the place has other ones of the run and nothing to do. */
  async prefetch(next: Omit<WantedWeights, 'sampler' | 'server' | 'tensorParallel'>): Promise<void> {
    const held = this.#held;
    if (held === undefined || held.runId !== next.runId) return;
    const { sampler, server, tensorParallel } = held;
    const wanted = { ...next, sampler, ...(server && { server }), ...(tensorParallel && { tensorParallel }) };
    if (isOfSameModel(held, wanted) && this.#place.isIdle) await this.use(wanted, async () => {});
  }

  /** The run paused or ended: a server's weights are not kept on the disk for it. */
  async leave(runId: string): Promise<void> {
    if (this.#held?.runId !== runId || this.#held.server === undefined) return;
    const sampler = await this.#place.taken();
    if (sampler === undefined) return;
    this.#held = undefined;
    this.#growing?.from.fail();
    await this.#ports.close(sampler);
  }

  forget(sampler: OwningSampler): void {
    this.#place.forget(sampler);
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

  async #make(wanted: WantedWeights, before: OwningSampler | undefined): Promise<OwningSampler> {
    const growing = this.#begin(wanted);
    const sampler = await this.#emptied(wanted, before);
    this.#held = wanted;
    growing.begin(sampler);
    try {
      await this.#load(wanted, sampler);
      return sampler;
    } catch (error) {
      this.#growing?.from.fail();
      this.#growing = undefined;
      this.#held = undefined;
      await this.#ports.close(sampler);
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

  /** The sampler of before, if it is of the same model; else a new one, after that one is closed. */
  async #emptied(wanted: WantedWeights, before: OwningSampler | undefined): Promise<OwningSampler> {
    if (before !== undefined && this.#held !== undefined && isOfSameModel(this.#held, wanted)) {
      await this.#ports.interrupt(before);
      return before;
    }
    if (before !== undefined) await this.#ports.close(before);
    return this.#ports.open(wanted);
  }

  async #load(wanted: WantedWeights, sampler: OwningSampler): Promise<void> {
    if ((await this.#fromPolicy(wanted, sampler)) || (await this.#fromHolders(wanted, sampler))) return;
    try {
      const found = await this.#use(wanted, sampler, await this.#fromStore(wanted, sampler));
      const { digest } = wanted.publication;
      if (found !== digest)
        throw new InvalidInputError(`weights ${digest.slice(0, 12)} expected, ${found.slice(0, 12)} loaded`);
    } catch (error) {
      // The weights may be intact.
      if (error instanceof RetryableError || saysNothingOfData(error) || isServerFault(error)) throw error;
      if (isBase(wanted)) throw damage('DamagedModel', `models/${wanted.model}`, errorToJson(error).message);
      throw new RetryableError('WeightsDamaged', `WeightsDamaged: ${errorToJson(error).message}`);
    }
    this.#growing?.from.complete();
  }

  /** The policy of this process, for a sampler of another engine. Resolves with whether the sampler has its weights. */
  async #fromPolicy(wanted: WantedWeights, sampler: OwningSampler): Promise<boolean> {
    const { format, digest } = wanted.publication;
    const policy = this.#ports.policy(wanted);
    const bytes = publishedBytes(sampler.parameters, format);
    if (policy === undefined || (await policy.bytes()) !== bytes) return false;
    const piece = new Uint8Array(Math.min(bytes, pieceBytes));
    const found = await this.#use(wanted, sampler, {
      type: 'published',
      format,
      read: async (sinkOf) => {
        const sink = sinkOf(0, bytes);
        for (let at = 0; at < bytes; at += piece.length) {
          const some = piece.subarray(0, Math.min(piece.length, bytes - at));
          await policy.read(at, some);
          await sink(some);
          this.#ports.tick();
        }
      },
    });
    // Another state may have come into the policy meanwhile.
    return found === digest;
  }

  /** Resolves with whether the sampler has the weights now. */
  async #fromHolders(wanted: WantedWeights, sampler: OwningSampler): Promise<boolean> {
    const { runId, publication, holders, secret } = wanted;
    if (isBase(wanted) || secret === undefined || holders.length === 0) return false;
    const { format, digest } = publication;
    const bytes = publishedBytes(sampler.parameters, format);
    const growing = this.#begin(wanted);
    growing.begin(sampler);
    let complete = false;
    const found = await this.#use(wanted, sampler, {
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
    if (complete && found === digest) {
      growing.complete();
      return true;
    }
    if (complete)
      this.#ports.log(
        `${runId}: weights ${digest.slice(0, 12)} from ${holders.join(' or ')} do not match their digest`,
      );
    this.#begin(wanted).begin(sampler); // who reads along gets an error
    return false;
  }

  async #fromStore(wanted: WantedWeights, sampler: OwningSampler): Promise<StateSource> {
    const { runId, publication } = wanted;
    const { format, digest } = publication;
    const store = await this.#ports.store(wanted.store);
    const manifest = await readRecord(store, keys.weights(runId, digest), weightsManifest);
    if (manifest === undefined) {
      if (isBase(wanted)) return this.#ports.base(wanted);
      throw new RetryableError('WeightsMissing', `WeightsMissing: ${digest.slice(0, 12)} are not published yet`);
    }
    const came = (bytes: number): void => {
      this.#read.store += bytes;
      this.#growing?.from.advance(bytes);
    };
    if (format === 'BF16') return roundedSource(sampler.parameters, { store, runId, manifest: manifest.record }, came);
    return {
      type: 'pieces',
      steps: 0,
      read: async (sinkOf) => {
        for (const shard of byStart(manifest.record.shards))
          await readShard(shard, weightsAlone, streamBlob(store, runId, shard.blob), (piece) => {
            const sink = sinkOf(piece);
            return async (bytes) => {
              await sink(bytes);
              came(bytes.byteLength);
            };
          });
      },
    };
  }

  #use({ profile, publication }: WantedWeights, sampler: OwningSampler, source: StateSource): Promise<string> {
    const named = { format: publication.format, hash: blockHashOf(profile) };
    return sampler.use(source, named, { tick: this.#ports.tick });
  }
}

/** Are they the weights of the model's folder? */
const isBase = ({ iteration, profile }: WantedWeights): boolean => iteration === 0 && beginsAsModel(profile);
