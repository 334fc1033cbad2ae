/**
 * The models that one worker process has in memory: those of the run that leased the trainer, a reference model,
 * and a model that only generates. It runs on the engine's own thread. The methods serve the stages of
 * core/wire/jobs.ts.
 */
import { randomUUID } from 'node:crypto';
import { isDamage } from '../../core/damage.ts';
import { PreemptedError } from '../../core/errors.ts';
import type { Digest, JobId, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Engines, ModelRef } from '../../core/ports/engines.ts';
import type { EngineOptions, HeadKind, PolicyEngine, WeightsFormat } from '../../core/ports/policy.ts';
import type { SamplerRoom } from '../../core/ports/sampler.ts';
import { blockHashOf, namedBlockHash } from '../../core/records/block-hash.ts';
import { mapComponents } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { publishedFormat } from '../../core/records/publications.ts';
import type { Publication } from '../../core/records/publications.ts';
import { recordFormat, weightsManifest } from '../../core/records/schema.ts';
import type { BatchRecord, NumericProfile, WeightsManifest } from '../../core/records/schema.ts';
import type {
  CheckpointOutput,
  RolloutInput,
  StageTypes,
  Trains,
  UpdateInput,
  UpdateOutput,
} from '../../core/wire/jobs.ts';
import type { EngineFacts } from '../../core/wire/engine-facts.ts';
import type { NewWeights } from '../../core/wire/weights.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { isIntact } from '../../infra/store/blobs.ts';
import { isCheckpoint } from '../../infra/store/manifests.ts';
import { modelFolder, readModelManifest } from '../../infra/store/model-facts.ts';
import type { ModelPart } from '../../infra/store/model-facts.ts';
import { checkedByMainThread, storesByUrl } from '../../infra/store/open-stores.ts';
import { encodeRecord, readRecord } from '../../infra/store/records.ts';
import type { Stored } from '../../infra/store/records.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { watchedStore } from '../../infra/store/watched.ts';
import { RunLog } from '../../infra/store/run-log.ts';
import type { Dataset } from '../../models/dataset-rows.ts';
import { OpenDatasets } from '../datasets.ts';
import { CheckpointWriter } from './checkpoint-writer.ts';
import type { Generation } from './generation.ts';
import { wholeWeights } from './growing-weights.ts';
import type { ReadableWeights } from './growing-weights.ts';
import type { JournalPorts } from './journal-writer.ts';
import { MemoryPlan } from './memory-plan.ts';
import { engineRegistry } from './engines/registry.ts';
import { factsOf, kindOf, requireServed, resolveProfile } from './profile.ts';
import { OnnxModels } from './onnx-models.ts';
import { OwnModules } from './own-modules.ts';
import { savePublished } from './published-shards.ts';
import { restoreTo, loadBase } from './recover.ts';
import type { RecoverPorts } from './recover.ts';
import { Samplers } from './samplers.ts';
import { RolloutModel } from './rollout-model.ts';
import type { WeightsRead } from './rollout-model.ts';
import { refuseToLead } from './standby-leads.ts';
import { namesOf, RunState } from './state.ts';

/** Which job this is, and how it reports its progress. */
export interface JobContext {
  readonly runId: RunId;
  readonly jobId: JobId;
  readonly at: { readonly term: number; readonly iteration: number };
  readonly store: string;
  /** Reports committed work. Throws PreemptedError in a trainer's stage whose run was cancelled. */
  readonly progress: (done: number, total: number, note: string) => void;
  /** Aborted, with a PreemptedError, when the result is no longer needed. */
  readonly signal: AbortSignal;
  /** Throws PreemptedError when the result is no longer needed. */
  readonly throwIfCancelled: () => void;
  readonly say: (text: string) => void;
  /** What to load as the weights of a rollout job; undefined: the fp32 values. */
  readonly publication: Publication | undefined;
  /** Processes that have the job's weights, or get them before this one. */
  readonly holders: readonly string[];
  /** Reports samples that have ended before their job. */
  readonly ended: (samples: readonly EndedSample[]) => void;
  /** Records an operational metric of the job. */
  readonly count: (name: string, value: number) => void;
  readonly journal: JournalPorts & {
    /** Journal entries that earlier workers wrote for this job. */
    readonly entries: readonly string[];
    /** Calls `listener` when entries were lost, until the returned function is called. */
    readonly onLost: (listener: () => void) => () => void;
  };
}

/** A whole response to a draw. */
export interface EndedSample {
  readonly draw: number;
  readonly row: number;
  /** The sample's number among the responses to its draw. */
  readonly sample: number;
  readonly tokens: Int32Array;
}

/** What a frozen model is for. */
export type FrozenRole = 'reference' | 'teacher' | 'rewardModel';

/** What a job says of the models that its run trains. */
export interface TrainedModels extends Trains {
  readonly model: Digest;
  readonly profile: NumericProfile;
}

export interface HostOptions {
  readonly threads: number;
  /** Folder for copies of remote models. */
  readonly cache: string;
  readonly onSaved: (ms: number) => void;
  /**
   * One Int32 that rises with committed work, and with every piece of a model, a checkpoint or weights that is read or
   * written.
   */
  readonly ticks: Int32Array<SharedArrayBuffer>;
  /** Memory for all models of this process; default: the machine's. */
  readonly memoryBytes?: number;
  /** Name of this process among all others; default: a random one. */
  readonly incarnation?: string;
  /** Default: those of the registry. */
  readonly engines?: readonly Engines[];
}

/** The number of runs whose secret a process remembers. */
const mostSecrets = 100;

const savingId = ({ runId, store }: Pick<JobContext, 'runId' | 'store'>, iteration: number, state: Digest) =>
  `${store} ${runId} ${iteration} ${state}`;

/** The head of each component of a run. A reward model beside a policy is implicit: it gives log-probs. */
function headOf(component: string, all: readonly string[]): HeadKind {
  if (component === 'actor') return 'tokens';
  if (component === 'rewardModel') return all.includes('actor') ? 'tokens' : 'scores';
  return 'values';
}

interface TrainedState {
  readonly runId: RunId;
  readonly profile: string;
  readonly state: RunState;
  /** Other components of the run are not in it. */
  readonly isPart: boolean;
  /** The state's position in its run's log, while it is clean. */
  place?: { readonly context: JobContext; readonly iteration: number };
}

const partKey = ({ components }: Trains): string => (components ?? ['actor']).join(' ');

export class EngineHost {
  readonly options: HostOptions;
  /** What its engines say of themselves. */
  readonly facts: readonly EngineFacts[];
  readonly #stores = storesByUrl(checkedByMainThread);
  readonly #datasets = new OpenDatasets();
  readonly #engines: readonly Engines[];
  readonly #samplers = new Samplers();
  readonly #incarnation: string;
  /** The states of one run that this process trains, by the names of their components: several where it is divided. */
  readonly #trained = new Map<string, TrainedState>();
  /** Set when this worker leaves: the error of every later generation. */
  #leaving: PreemptedError | undefined;
  readonly #frozen = new Map<FrozenRole, { readonly key: string; readonly engine: PolicyEngine }>();
  readonly #rolloutModel: RolloutModel;
  /** Maps a run to the secret with which its workers get weights from each other. */
  readonly #weightsSecrets = new Map<string, string>();
  readonly #writer: CheckpointWriter;
  /** Code of the user's own. */
  readonly own = new OwnModules();
  readonly onnx: OnnxModels;
  readonly #watched = new WeakMap<Store, Store>();
  /** Checkpoints being written, by run, position and state: a fork has the state of its origin. */
  readonly #saving = new Map<string, Promise<CheckpointOutput>>();

  constructor(options: HostOptions) {
    this.options = options;
    this.#incarnation = options.incarnation ?? randomUUID();
    const memory = new MemoryPlan(options.memoryBytes ?? machineBytes());
    this.#engines = options.engines ?? Object.values(engineRegistry).map((made) => made({ memory }));
    this.facts = this.#engines.map((engines) => engines.facts());
    this.#writer = new CheckpointWriter(options.ticks.buffer);
    this.onnx = new OnnxModels(memory, options.threads, this.#tick);
    this.#rolloutModel = new RolloutModel({
      store: (url) => this.store(url),
      open: async (wanted) => {
        const folder = await this.modelFolder(wanted, wanted.model, 'text');
        const sampler = await this.#samplerEngines(wanted).sampler(
          { folder, head: 'tokens' },
          this.#optionsFor(wanted.profile),
        );
        void sampler.exited.then(() => {
          this.#samplers.forget(sampler);
          this.#rolloutModel.forget(sampler);
        });
        return sampler;
      },
      base: async (wanted) => ({ type: 'folder', folder: await this.modelFolder(wanted, wanted.model) }),
      interrupt: (sampler) => this.#samplers.interrupt(sampler),
      close: async (sampler) => {
        await this.#samplers.close(sampler);
        await sampler.close();
      },
      tick: this.#tick,
      log: (line) => console.error(line),
    });
  }

  /** Every piece that is streamed from or to it counts as progress. */
  async store(url: string): Promise<Store> {
    const store = await this.#stores(url);
    const watched = this.#watched.get(store) ?? watchedStore(store, this.#tick);
    this.#watched.set(store, watched);
    return watched;
  }

  readonly #tick = (): void => void Atomics.add(this.options.ticks, 0, 1);

  async log(context: JobContext): Promise<RunLog> {
    return new RunLog(await this.store(context.store), context.runId);
  }

  async dataset(context: JobContext, digest: Digest): Promise<Dataset> {
    return this.#datasets.open(await this.store(context.store), digest);
  }

  async modelFolder(context: Pick<JobContext, 'store'>, model: Digest, part: ModelPart = 'all'): Promise<string> {
    return modelFolder(await this.store(context.store), model, this.options.cache, part, this.#tick);
  }

  /** Names of a model's files. */
  async modelFiles(context: JobContext, model: Digest): Promise<readonly string[]> {
    return (await readModelManifest(await this.store(context.store), model)).map(({ name }) => name);
  }

  /** Loads the state that the run's first term starts from, and returns its digests. */
  async open(input: StageTypes['open']['input'], context: JobContext): Promise<StageTypes['open']['output']> {
    const profile = resolveProfile(input.engine, this.facts);
    const state = await this.#runState(context, { ...input, profile });
    const ports = await this.#recoverPorts(context, input.model, profile);
    const saved = input.from === undefined ? undefined : await this.#openFork(state, input.from, context, ports);
    if (input.from === undefined) await loadBase(state, ports);
    if (state.tag === undefined) throw new Error('a loaded base is clean');
    this.standsAt(state, context, input.from?.iteration ?? 0);
    const { stateDigest, components } = state.tag;
    return {
      stateDigest,
      components: mapComponents(components, ({ stateDigest: own, weightsDigest }) => ({
        stateDigest: own,
        weightsDigest,
        profile,
      })),
      ...(saved?.shards && { shards: saved.shards }),
    };
  }

  async #openFork(
    state: RunState,
    { runId, iteration, state: target }: NonNullable<StageTypes['open']['input']['from']>,
    context: JobContext,
    ports: RecoverPorts,
  ): Promise<CheckpointOutput> {
    await restoreTo(state, target, iteration, { ...ports, log: new RunLog(ports.log.store, runId) });
    return (await this.checkpoint(state, context, iteration)).written;
  }

  /**
   * The models at exactly this committed state: position `context.at.iteration` of the log. With `follows`, of a
   * standby in a run that need not be reproducible: at a state that the same batches have made. Throws TerminalError
   * `StandbyLeads` when such a standby is asked for the state itself.
   */
  async stateAt(context: JobContext, trained: TrainedModels, target: Digest, follows = false): Promise<RunState> {
    const { model, profile } = trained;
    const state = await this.#runState(context, trained);
    if (state.tag?.stateDigest !== target) {
      const mayDiffer = !profile.deterministic;
      // Only a state of the whole run can begin a term.
      if (mayDiffer && !follows && trained.part !== true)
        await refuseToLead(state, target, context, await this.log(context));
      await this.interrupt(state);
      const ports = await this.#recoverPorts(context, model, profile);
      await restoreTo(state, target, context.at.iteration, { ...ports, follows: mayDiffer && follows });
    }
    this.standsAt(state, context, context.at.iteration, state.tag?.stateDigest === target);
    return state;
  }

  /**
   * The state that exactly this update has made, if it is in memory: a standby that leads now has applied the batch
   * already. In a term that it opened with its own state, the batch is a copy.
   */
  async stateMadeBy(
    context: JobContext,
    input: TrainedModels & Pick<UpdateInput, 'parentState' | 'standby'>,
    batch: Stored<BatchRecord>,
  ): Promise<{ readonly state: RunState; readonly output: UpdateOutput } | undefined> {
    const state = await this.#runState(context, input);
    const { madeBy } = state;
    if (madeBy === undefined) return undefined;
    const { batch: digest, original, badSteps } = namesOf(batch);
    // A standby may be asked twice, and need not have begun with the state that the job names.
    const isAgain = input.standby === true && madeBy.batch === digest;
    const isSame = madeBy.from === input.parentState && madeBy.original === original && madeBy.badSteps === badSteps;
    return isAgain || isSame ? { state, output: madeBy.output } : undefined;
  }

  /**
   * Notes that the state is at this position of its run now; `isLogged`: the log has, or gets, just this state there.
   */
  standsAt(state: RunState, context: JobContext, iteration: number, isLogged = true): void {
    for (const trained of this.#trained.values()) {
      if (trained.state !== state) continue;
      if (isLogged) trained.place = { context, iteration };
      else delete trained.place;
    }
  }

  /** Drops the samples in flight that the state's policy generates, since its weights are about to change. */
  async interrupt({ engine }: RunState): Promise<void> {
    await this.#samplers.interrupt(engine);
  }

  /** This worker leaves: drops the samples in flight and starts no new ones. */
  async requeue(because: string): Promise<void> {
    const leaving = new PreemptedError('Leaving', `requeued: ${because}`);
    this.#leaving = leaving;
    await this.#samplers.interruptAll(leaving);
  }

  /** The run paused or ended: drops its samples in flight. */
  async abandon(runId: RunId): Promise<void> {
    await this.#samplers.abandon(runId);
  }

  /**
   * A model that does not learn, one in each role. It gives log-probs, as a reward model a score of whole responses.
   */
  async frozen(role: FrozenRole, context: JobContext, model: Digest, profile: NumericProfile): Promise<PolicyEngine> {
    const key = `${model} ${kindOf(profile)}`;
    const known = this.#frozen.get(role);
    if (known?.key === key) return known.engine;
    this.#frozen.delete(role);
    if (known !== undefined) await this.#close(known.engine);
    const engine = await this.#loadModel(context, model, profile, role === 'rewardModel' ? 'scores' : 'tokens');
    this.#frozen.set(role, { key, engine });
    return engine;
  }

  /**
   * Samples with exactly these weights: the policy's in place, the published ones, or the base. `work` asks the
   * generation for samples.
   */
  async sampling<T>(
    context: JobContext,
    { model, profile, weights, sampler }: Pick<RolloutInput, 'model' | 'profile' | 'weights' | 'sampler'>,
    room: SamplerRoom,
    work: (generation: Generation) => Promise<T>,
  ): Promise<T> {
    if (this.#leaving !== undefined) throw this.#leaving;
    const inPlace = this.#samplerEngines({ sampler, profile }).samplerOf;
    const policy = [...this.#trained.values()].find(
      (trained) => trained.state.tag?.weightsDigest === weights && trained.profile === kindOf(profile),
    )?.state.engine;
    if (policy !== undefined && inPlace !== undefined && sampler === profile.engine)
      return work(this.#samplers.generationOf(policy, room, () => inPlace(policy)));
    const { runId, store, at, holders, publication = { format: 'F32', digest: weights } } = context;
    const secret = this.#weightsSecrets.get(runId);
    const began = performance.now();
    return this.#rolloutModel.use(
      { runId, store, iteration: at.iteration, model, profile, sampler, weights, publication, holders, secret },
      async (own) => {
        countLoad(context, performance.now() - began, this.#rolloutModel.takeRead());
        if (this.#leaving !== undefined) throw this.#leaving;
        context.throwIfCancelled(); // loading may have taken long
        return work(this.#samplers.generationOf(own, room, async () => own));
      },
    );
  }

  /**
   * An update of a run was committed whose earlier weights this process may have: gets the new ones while it has
   * nothing to do.
   */
  async prefetch({ runId, weights, model, ...committed }: NewWeights, holders: readonly string[]): Promise<void> {
    const secret = this.#weightsSecrets.get(runId);
    const { publication = { format: 'F32', digest: weights } } = committed;
    const named = { runId: runId as RunId, weights: weights as Digest, model: model as Digest };
    const wanted = { ...committed, ...named, publication };
    if (this.#leaving === undefined && secret !== undefined)
      await this.#rolloutModel.prefetch({ ...wanted, holders, secret });
  }

  /** This process works for the run: it may give its weights to others that do, and get them from these. */
  trust(runId: string, secret: string): void {
    this.#weightsSecrets.delete(runId);
    this.#weightsSecrets.set(runId, secret);
    const [oldest] = this.#weightsSecrets.keys();
    if (this.#weightsSecrets.size > mostSecrets && oldest !== undefined) this.#weightsSecrets.delete(oldest);
  }

  weightsSecretOf(runId: string): string | undefined {
    return this.#weightsSecrets.get(runId);
  }

  /** Weights for others that are in memory, or come into it now or soon. */
  async readableWeights(runId: string, publication: string): Promise<ReadableWeights | undefined> {
    const formatOf = ({ tag }: RunState): WeightsFormat | undefined => {
      if (tag?.weightsDigest === publication) return 'F32';
      return tag?.publication?.digest === publication ? tag.publication.format : undefined;
    };
    const policy = () =>
      [...this.#trained.values()].find((one) => one.runId === runId && formatOf(one.state) !== undefined);
    const trained = policy();
    const format = trained && formatOf(trained.state);
    if (trained === undefined || format === undefined) return this.#rolloutModel.soonReadable(runId, publication);
    return wholeWeights(trained.state.engine, format, () => policy() === trained);
  }

  /** The arithmetic in which this process samples. Log-probs of one arithmetic are useless in another. */
  arithmetic(input: Pick<RolloutInput, 'sampler' | 'profile'>): string {
    return this.#samplerEngines(input).arithmetic(input.profile);
  }

  /** The engine that serves the profile. Throws UnfitError when none does. */
  #enginesFor(profile: NumericProfile): Engines {
    return this.#named(requireServed(profile, this.facts).name);
  }

  /** The engine that samples for a run. Throws UnfitError when this worker has none, or it cannot sample so. */
  #samplerEngines({ sampler, profile }: Pick<RolloutInput, 'sampler' | 'profile'>): Engines {
    if (sampler === profile.engine) return this.#enginesFor(profile);
    return this.#named(factsOf(sampler, this.facts).name);
  }

  #named(name: string): Engines {
    const found = this.#engines.find((engines) => engines.name === name);
    if (found === undefined) throw new Error(`the facts name an engine that is not here: ${name}`);
    return found;
  }

  #optionsFor({ compute, deterministic }: NumericProfile): EngineOptions {
    return { compute, deterministic, threads: this.options.threads };
  }

  /**
   * Resolves when the state is copied; training continues while the copy is written. A state that is already being
   * written is not written twice. Of a part of a run's state only the shards are written.
   */
  async checkpoint(
    state: RunState,
    context: JobContext,
    iteration: number,
  ): Promise<{ readonly written: Promise<CheckpointOutput> }> {
    const digests = state.tag;
    if (digests === undefined) throw new Error('only a clean state is saved');
    const id = savingId(context, iteration, digests.stateDigest);
    const known = this.#saving.get(id);
    if (known !== undefined) return { written: known };
    const { runId, store, at } = context;
    const isPart = [...this.#trained.values()].some((trained) => trained.state === state && trained.isPart);
    const copied = this.#writer.write({ store, runId, term: at.term, iteration, isPart }, state, digests);
    const written = copied
      .then(({ written }) => written)
      .then(({ saved, ms }) => {
        this.options.onSaved(ms);
        return saved;
      })
      .finally(() => this.#saving.delete(id));
    this.#saving.set(id, written);
    written.catch(() => {}); // the caller sees the error of the copy first
    await copied;
    return { written };
  }

  /** A checkpoint is due after the present job: allocates the memory for its copy. */
  prepareCheckpoint(state: RunState): void {
    this.#writer.prepare(state.engine, Object.keys(state.engines)[0]);
  }

  /** Key of this state's manifest, after a write in progress has ended; undefined when there is none. */
  async savedCheckpoint(context: JobContext, state: Digest): Promise<string | undefined> {
    await this.#saving.get(savingId(context, context.at.iteration, state));
    const key = keys.checkpoint(context.runId, context.at.iteration, state);
    return (await isCheckpoint(await this.store(context.store), key)) ? key : undefined;
  }

  /**
   * Finishes, on leaving, the checkpoints being written, and writes the state in memory if there is time. It leaves out
   * a part of a state, since a checkpoint has all of it.
   */
  async saveLast(inTime: boolean): Promise<{ readonly runId?: RunId; readonly text: string }> {
    await Promise.allSettled(this.#saving.values());
    const whole = [...this.#trained.values()].find(({ isPart }) => !isPart);
    const [state, place] = [whole?.state, whole?.place];
    if (state?.tag === undefined || place === undefined || place.iteration === 0) return { text: 'nothing to save' };
    const { runId } = place.context;
    const at = { ...place.context, at: { ...place.context.at, iteration: place.iteration } };
    if ((await this.savedCheckpoint(at, state.tag.stateDigest)) !== undefined)
      return { runId, text: `checkpoint ${place.iteration} is saved` };
    if (!inTime) return { runId, text: `no time to save checkpoint ${place.iteration}` };
    await (await this.checkpoint(state, place.context, place.iteration)).written;
    return { runId, text: `checkpoint ${place.iteration} saved` };
  }

  /** Writes the policy's weights for workers outside this process. */
  async publishWeights(state: RunState, context: JobContext, wanted?: Publication): Promise<string> {
    const tag = state.tag;
    if (tag === undefined) throw new Error('only clean weights are published');
    const publication = wanted ?? { format: 'F32', digest: tag.weightsDigest };
    const { format, digest } = publication;
    if (format !== 'F32' && tag.publication?.digest !== digest)
      throw new Error(`the policy is not published as ${digest.slice(0, 12)}`);
    const store = await this.store(context.store);
    const key = keys.weights(context.runId, digest);
    if (await this.#weightsAreThere(store, context.runId, digest)) return key;
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

  /** The run paused or ended: frees its memory. */
  async release(runId: RunId): Promise<void> {
    const states = [...this.#trained.values()];
    if (!states.some((trained) => trained.runId === runId)) return;
    const frozen = [...this.#frozen.values()].map(({ engine }) => engine);
    const engines = [...states.flatMap(({ state }) => Object.values(state.engines)), ...frozen];
    this.#trained.clear();
    this.#frozen.clear();
    this.#writer.release();
    await this.own.close();
    await this.onnx.close();
    for (const engine of engines) await this.#close(engine);
  }

  /** Another trainer trains these components of the run: frees their memory. */
  async releasePart(runId: RunId, components: readonly string[]): Promise<void> {
    const key = partKey({ components });
    const trained = this.#trained.get(key);
    if (trained?.runId !== runId) return;
    this.#trained.delete(key);
    for (const engine of Object.values(trained.state.engines)) await this.#close(engine);
  }

  async #runState(context: JobContext, { model, profile, components, part }: TrainedModels): Promise<RunState> {
    const { runId } = context;
    const key = partKey({ ...(components && { components }) });
    const known = this.#trained.get(key);
    if (known?.runId === runId && known.profile === kindOf(profile) && known.state.model === model) return known.state;
    const isMate = (other: TrainedState) => other.runId === runId && other.isPart && part === true;
    for (const [name, other] of this.#trained) if (name === key || !isMate(other)) await this.release(other.runId);
    const folder = await this.modelFolder(context, model, 'text');
    const engines: Record<string, PolicyEngine> = {};
    try {
      const names = components ?? ['actor'];
      for (const name of names) engines[name] = await this.#open({ folder, head: headOf(name, names) }, profile, true);
    } catch (error) {
      for (const engine of Object.values(engines)) await this.#close(engine);
      throw error;
    }
    const { id, engine, naming } = profile;
    const lineage = { profile: id, engine, incarnation: this.#incarnation };
    const state = new RunState(
      engines,
      model,
      blockHashOf(profile),
      publishedFormat(profile),
      naming === 'lineage' ? lineage : undefined,
    );
    this.#trained.set(key, { runId, profile: kindOf(profile), state, isPart: part === true });
    return state;
  }

  async #open(model: ModelRef, profile: NumericProfile, trainable: boolean): Promise<PolicyEngine> {
    const engine = await this.#enginesFor(profile).open(model, { ...this.#optionsFor(profile), trainable });
    void engine.exited.then(() => this.#forget(engine));
    return engine;
  }

  /** An engine that has ended by itself: the next job that needs its model loads it again. */
  #forget(engine: PolicyEngine): void {
    this.#samplers.forget(engine);
    for (const [role, known] of this.#frozen) if (known.engine === engine) this.#frozen.delete(role);
    for (const [key, { state }] of this.#trained) {
      const mates = Object.values(state.engines);
      if (!mates.includes(engine)) continue;
      for (const mate of mates) if (mate !== engine) this.#close(mate).catch(() => {}); // it may have ended, too
      this.#trained.delete(key);
      this.#writer.release();
    }
  }

  async #loadModel(context: JobContext, model: Digest, profile: NumericProfile, head: HeadKind): Promise<PolicyEngine> {
    const folder = await this.modelFolder(context, model);
    const engine = await this.#open({ folder, head }, profile, false);
    await engine.load({ type: 'folder', folder }, { tick: this.#tick });
    return engine;
  }

  /** Whether the weights' manifest and every blob that it names are intact. */
  async #weightsAreThere(store: Store, runId: RunId, weights: Digest): Promise<boolean> {
    const manifest = await readRecord(store, keys.weights(runId, weights), weightsManifest).catch(unlessDamaged);
    if (manifest === undefined) return false;
    const intact = manifest.record.shards.map(({ blob, bytes }) =>
      isIntact(store, keys.blob(runId, blob), bytes, blob),
    );
    return (await Promise.all(intact)).every(Boolean);
  }

  /** Closes what samples from the model first. */
  async #close(engine: PolicyEngine): Promise<void> {
    await this.#samplers.close(engine);
    await engine.close();
  }

  async #recoverPorts(context: JobContext, model: Digest, { deterministic }: NumericProfile): Promise<RecoverPorts> {
    return {
      runId: context.runId,
      ownLoss: this.own.lossIn(await this.store(context.store)),
      log: await this.log(context),
      baseFolder: await this.modelFolder(context, model),
      reproducible: deterministic,
      say: context.say,
      signal: context.signal,
      tick: (note, done, total) => context.progress(done, total, note),
      count: context.count,
    };
  }
}

/** How long the job has waited for its weights, and what its process has read for it. */
function countLoad(context: JobContext, ms: number, { holders, store }: WeightsRead): void {
  context.count('timing_s/load_weights', ms / 1_000);
  context.count('perf/weights_from_workers_gb', holders / 1e9);
  context.count('perf/weights_from_store_gb', store / 1e9);
}

/** A damaged manifest is as good as none. A store that cannot be read says nothing about it. */
function unlessDamaged(error: unknown): undefined {
  if (!isDamage(error)) throw error;
}
