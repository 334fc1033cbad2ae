/**
 * Weights that leave a process or come into it: those of its policy for others, through the store or from its memory,
 * and those of others' policies for its sampler.
 */
import { isDamage } from '../../../core/records/damage.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import type { WeightsFormat } from '../../../core/parameters.ts';
import type { OwningSampler } from '../../../core/ports/sampler.ts';
import type { Store } from '../../../core/ports/store.ts';
import { namedBlockHash } from '../../../core/records/block-hash.ts';
import { keys } from '../../../core/records/keys.ts';
import type { Publication } from '../../../core/records/publications.ts';
import { recordFormat, weightsManifest } from '../../../core/records/schema.ts';
import type { WeightsManifest } from '../../../core/records/schema.ts';
import type { RolloutInput } from '../../../core/wire/jobs/index.ts';
import type { NewWeights } from '../../../core/wire/weights.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { isIntact } from '../../../log/objects/blobs.ts';
import { encodeRecord, readRecord } from '../../../log/objects/records.ts';
import type { Samplers } from '../generation/samplers.ts';
import type { JobContext } from '../job/context.ts';
import type { RunState } from '../state/state.ts';
import { wholeWeights } from '../weights/growing-weights.ts';
import type { ReadableWeights } from '../weights/growing-weights.ts';
import { savePublished } from '../weights/published-shards.ts';
import { RolloutModel } from '../weights/rollout-model.ts';
import type { WantedWeights, WeightsRead } from '../weights/rollout-model.ts';
import type { EngineChoice, SamplerWanted } from './engine-choice.ts';
import type { HostFiles } from './files.ts';
import type { TrainedState } from './models.ts';

/** The number of runs whose secret a process remembers. */
const mostSecrets = 100;

/** Which model samples with which weights. */
export type SamplingInput = SamplerWanted & Pick<RolloutInput, 'model' | 'weights'>;

export interface WeightsDeskPorts {
  readonly files: HostFiles;
  readonly engines: EngineChoice;
  readonly samplers: Samplers;
  readonly trained: () => readonly TrainedState[];
  readonly tick: () => void;
}

export class WeightsDesk {
  readonly #ports: WeightsDeskPorts;
  /** Maps a run to the secret with which its workers get weights from each other. */
  readonly #secrets = new Map<string, string>();
  readonly #rolloutModel: RolloutModel;

  constructor(ports: WeightsDeskPorts) {
    const { files, samplers, tick } = ports;
    this.#ports = ports;
    this.#rolloutModel = new RolloutModel({
      store: (url) => files.store(url),
      open: (wanted) => this.#openSampler(wanted),
      policy: ({ runId, publication }) => this.#ofPolicy(runId, publication.digest),
      base: async (wanted) => ({ type: 'folder', folder: await files.modelFolder(wanted, wanted.model) }),
      interrupt: (sampler) => samplers.interrupt(sampler),
      close: async (sampler) => {
        await samplers.close(sampler);
        await sampler.close();
      },
      tick,
      log: (line) => console.error(line),
    });
  }

  /** This process works for the run: it may give its weights to others that do, and get them from these. */
  trust(runId: string, secret: string): void {
    this.#secrets.delete(runId);
    this.#secrets.set(runId, secret);
    const [oldest] = this.#secrets.keys();
    if (this.#secrets.size > mostSecrets && oldest !== undefined) this.#secrets.delete(oldest);
  }

  secretOf(runId: string): string | undefined {
    return this.#secrets.get(runId);
  }

  /** Runs `work` with a sampler that has exactly these weights: the published ones, or the base. */
  async use<T>(
    context: JobContext,
    { model, profile, weights, sampler, server, tensorParallel }: SamplingInput,
    work: (sampler: OwningSampler) => Promise<T>,
  ): Promise<T> {
    const { runId, store, at, holders, publication = { format: 'F32', digest: weights } } = context;
    const secret = this.#secrets.get(runId);
    const began = performance.now();
    const kind = { model, profile, sampler, ...(server && { server }), ...(tensorParallel && { tensorParallel }) };
    return this.#rolloutModel.use(
      { runId, store, iteration: at.iteration, ...kind, weights, publication, holders, secret },
      async (own) => {
        countLoad(context, performance.now() - began, this.#rolloutModel.takeRead());
        return work(own);
      },
    );
  }

  /**
   * An update of a run was committed whose earlier weights this process may have: gets the new ones while it has
   * nothing to do.
   */
  async prefetch({ runId, weights, model, ...committed }: NewWeights, holders: readonly string[]): Promise<void> {
    const secret = this.#secrets.get(runId);
    const { publication = { format: 'F32', digest: weights } } = committed;
    const named = { runId: runId as RunId, weights: weights as Digest, model: model as Digest };
    const wanted = { ...committed, ...named, publication };
    if (secret !== undefined) await this.#rolloutModel.prefetch({ ...wanted, holders, secret });
  }

  /** The run paused or ended: what its server has loaded is not kept. */
  leave(runId: string): Promise<void> {
    return this.#rolloutModel.leave(runId);
  }

  /** Weights for others that are in memory, or come into it now or soon. */
  async readable(runId: string, publication: string): Promise<ReadableWeights | undefined> {
    return this.#ofPolicy(runId, publication) ?? this.#rolloutModel.soonReadable(runId, publication);
  }

  #ofPolicy(runId: string, publication: string): ReadableWeights | undefined {
    // Where states are named by their lineage, the weights have the name of what is published.
    const formatOf = ({ tag }: RunState): WeightsFormat | undefined => {
      if (tag?.publication?.digest === publication) return tag.publication.format;
      return tag?.weightsDigest === publication ? 'F32' : undefined;
    };
    const policy = () => this.#ports.trained().find((one) => one.runId === runId && formatOf(one.state) !== undefined);
    const trained = policy();
    const format = trained && formatOf(trained.state);
    if (trained === undefined || format === undefined) return undefined;
    return wholeWeights(trained.state.engine, format, () => policy() === trained);
  }

  /** Writes the policy's weights for workers outside this process. Resolves with the key of their manifest. */
  async publish(state: RunState, context: JobContext, wanted?: Publication): Promise<string> {
    const tag = state.tag;
    if (tag === undefined) throw new Error('only clean weights are published');
    const publication = wanted ?? { format: 'F32', digest: tag.weightsDigest };
    const { format, digest } = publication;
    if (format !== 'F32' && tag.publication?.digest !== digest)
      throw new Error(`the policy is not published as ${digest.slice(0, 12)}`);
    const store = await this.#ports.files.store(context.store);
    const key = keys.weights(context.runId, digest);
    if (await areThere(store, context.runId, digest)) return key;
    const place = { store, runId: context.runId, iteration: context.at.iteration };
    const manifest: WeightsManifest = {
      format: recordFormat,
      component: 'actor',
      weightsDigest: digest,
      ...namedBlockHash(state.blockHash),
      ...(await savePublished(place, state.engine, publication)),
    };
    faultPoint('weights.manifest.before', { iteration: context.at.iteration });
    await store.put(key, encodeRecord(manifest));
    faultPoint('weights.manifest.after', { iteration: context.at.iteration });
    return key;
  }

  async #openSampler(wanted: WantedWeights): Promise<OwningSampler> {
    const { files, engines, samplers } = this.#ports;
    const folder = await files.modelFolder(wanted, wanted.model, engines.sampling(wanted).reads ?? 'opening');
    const sampler = await engines.ownSampler(wanted, { folder, head: 'tokens' });
    void sampler.exited.then(() => {
      samplers.forget(sampler);
      this.#rolloutModel.forget(sampler);
    });
    return sampler;
  }
}

/** Whether the weights' manifest and every blob that it names are intact. */
async function areThere(store: Store, runId: RunId, weights: Digest): Promise<boolean> {
  const manifest = await readRecord(store, keys.weights(runId, weights), weightsManifest).catch(unlessDamaged);
  if (manifest === undefined) return false;
  const intact = manifest.record.shards.map(({ blob, bytes }) => isIntact(store, keys.blob(runId, blob), bytes, blob));
  return (await Promise.all(intact)).every(Boolean);
}

/** A damaged manifest is as good as none. A store that cannot be read says nothing about it. */
function unlessDamaged(error: unknown): undefined {
  if (!isDamage(error)) throw error;
}

/** How long the job has waited for its weights, and what its process has read for it. */
function countLoad(context: JobContext, ms: number, { holders, store }: WeightsRead): void {
  context.count('timing_s/load_weights', ms / 1_000);
  context.count('perf/weights_from_workers_gb', holders / 1e9);
  context.count('perf/weights_from_store_gb', store / 1e9);
}
