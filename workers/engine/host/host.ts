/**
 * The face of one worker process towards the stages of core/wire/jobs.ts. It runs on the engine's own thread and puts
 * the parts together that keep what stays in memory between jobs:
 *
 * - models.ts: the models of the run that leased the trainer, and those that do not learn;
 * - saves.ts: the checkpoints being written;
 * - weights-desk.ts: weights that go to other processes and come from them;
 * - files.ts: stores, datasets and copies of models; engine-choice.ts: which engine serves a job.
 */
import { randomUUID } from 'node:crypto';
import { PreemptedError } from '../../../core/errors.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import type { Engines } from '../../../core/ports/engines.ts';
import type { ScoringModel } from '../../../core/ports/policy.ts';
import type { SamplerRoom } from '../../../core/ports/sampler.ts';
import type { Store } from '../../../core/ports/store.ts';
import { mapComponents } from '../../../core/records/components.ts';
import type { Publication } from '../../../core/records/publications.ts';
import type { BatchRecord, NumericProfile } from '../../../core/records/schema.ts';
import type { EngineFacts } from '../../../core/wire/engine-facts.ts';
import type {
  CheckpointOutput,
  RolloutInput,
  StageTypes,
  UpdateInput,
  UpdateOutput,
} from '../../../core/wire/jobs/index.ts';
import type { NewWeights } from '../../../core/wire/weights.ts';
import { machineBytes } from '../../../infra/machine-memory.ts';
import type { ModelPart } from '../../../log/inputs/model-facts.ts';
import type { Stored } from '../../../log/objects/records.ts';
import { RunLog } from '../../../log/run/run-log.ts';
import type { Dataset } from '../../../models/dataset-rows.ts';
import { MemoryPlan } from '../engines/memory-plan.ts';
import { kindOf, resolveProfile } from '../engines/profile.ts';
import { engineRegistry } from '../engines/registry.ts';
import type { Generation } from '../generation/generation.ts';
import { Samplers } from '../generation/samplers.ts';
import type { JobContext } from '../job/context.ts';
import { OwnModules } from '../job/own-modules.ts';
import { namesOf } from '../state/state.ts';
import type { RunState } from '../state/state.ts';
import { loadBase, restoreTo } from '../update/recover.ts';
import type { RecoverPorts } from '../update/recover.ts';
import { refuseToLead } from '../update/standby-leads.ts';
import type { ReadableWeights } from '../weights/growing-weights.ts';
import { EngineChoice } from './engine-choice.ts';
import { HostFiles } from './files.ts';
import { Models } from './models.ts';
import type { FrozenRole, TrainedModels } from './models.ts';
import { OnnxModels } from './onnx-models.ts';
import { Saves } from './saves.ts';
import type { Save } from './saves.ts';
import { WeightsDesk } from './weights-desk.ts';
import type { SamplingInput } from './weights-desk.ts';

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
  /** Bytes of a batch's tensors above which it is stored in shards; tests lower it. */
  readonly mostBatchBytes?: number;
}

export class EngineHost {
  readonly options: HostOptions;
  /** Code of the user's own. */
  readonly own = new OwnModules();
  readonly onnx: OnnxModels;
  readonly #samplers = new Samplers();
  readonly #engines: EngineChoice;
  readonly #files: HostFiles;
  readonly #models: Models;
  readonly #saves: Saves;
  readonly #weights: WeightsDesk;
  /** Set when this worker leaves: the error of every later generation. */
  #leaving: PreemptedError | undefined;

  constructor(options: HostOptions) {
    const { threads, cache, ticks, onSaved, incarnation = randomUUID() } = options;
    const memory = new MemoryPlan(options.memoryBytes ?? machineBytes());
    const tick = () => void Atomics.add(ticks, 0, 1);
    const made =
      options.engines ?? Object.values(engineRegistry).flatMap((make) => make({ memory, threads, tick }) ?? []);
    const [files, engines, samplers] = [new HostFiles(cache, tick), new EngineChoice(made, threads), this.#samplers];
    this.options = options;
    this.#files = files;
    this.#engines = engines;
    this.onnx = new OnnxModels(memory, threads, tick);
    this.#saves = new Saves({
      store: (url) => files.store(url),
      ticks: ticks.buffer,
      onSaved,
      isPart: (state) => this.#models.isPart(state),
    });
    this.#models = new Models({
      files,
      engines,
      samplers,
      incarnation,
      tick,
      stateGone: () => this.#saves.release(),
      runGone: async () => {
        await this.own.close();
        await this.onnx.close();
      },
    });
    this.#weights = new WeightsDesk({ files, engines, samplers, tick, trained: () => this.#models.trained });
  }

  /** What its engines say of themselves. */
  get facts(): readonly EngineFacts[] {
    return this.#engines.facts;
  }

  store(url: string): Promise<Store> {
    return this.#files.store(url);
  }

  log(context: JobContext): Promise<RunLog> {
    return this.#files.log(context);
  }

  dataset(context: JobContext, digest: Digest): Promise<Dataset> {
    return this.#files.dataset(context, digest);
  }

  modelFolder(context: Pick<JobContext, 'store'>, model: Digest, part?: ModelPart): Promise<string> {
    return this.#files.modelFolder(context, model, part);
  }

  modelFiles(context: JobContext, model: Digest): Promise<readonly string[]> {
    return this.#files.modelFiles(context, model);
  }

  /** Loads the state that the run's first term starts from, and returns its digests. */
  async open(input: StageTypes['open']['input'], context: JobContext): Promise<StageTypes['open']['output']> {
    const profile = resolveProfile(input.engine, this.facts);
    const state = await this.#models.stateOf(context, { ...input, profile });
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
    const state = await this.#models.stateOf(context, trained);
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
    const state = await this.#models.stateOf(context, input);
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
    this.#models.standsAt(state, context, iteration, isLogged);
  }

  frozen(role: FrozenRole, context: JobContext, model: Digest, profile: NumericProfile): Promise<ScoringModel> {
    return this.#models.frozen(role, context, model, profile);
  }

  /**
   * Samples with exactly these weights: the policy's in place, the published ones, or the base. `work` asks the
   * generation for samples. `sampledBy`: the server that makes them.
   */
  async sampling<T>(
    context: JobContext,
    input: SamplingInput,
    room: SamplerRoom,
    work: (generation: Generation, sampledBy?: string) => Promise<T>,
  ): Promise<T> {
    this.#throwIfLeaving();
    const { profile, weights, sampler } = input;
    const inPlace = this.#engines.sampling(input).samplerOf;
    const policy = this.#models.trained.find(
      (trained) => trained.state.tag?.weightsDigest === weights && trained.profile === kindOf(profile),
    )?.state.engine;
    if (policy !== undefined && inPlace !== undefined && sampler === profile.engine)
      return work(this.#samplers.generationOf(policy, room, () => inPlace(policy)));
    return this.#weights.use(context, input, async (own) => {
      this.#throwIfLeaving();
      context.throwIfCancelled(); // loading may have taken long
      return work(
        this.#samplers.generationOf(own, room, async () => own),
        own.sampledBy,
      );
    });
  }

  /** The arithmetic in which this process samples. Log-probs of one arithmetic are useless in another. */
  arithmetic(input: Pick<RolloutInput, 'sampler' | 'profile'>): string {
    return this.#engines.sampling(input).arithmetic(input.profile);
  }

  /** Drops the samples in flight that the state's policy generates, since its weights are about to change. */
  async interrupt({ engine }: RunState): Promise<void> {
    await this.#samplers.interrupt(engine);
  }

  /** The run paused or ended: drops its samples in flight, and the weights of its server. */
  async abandon(runId: RunId): Promise<void> {
    await this.#samplers.abandon(runId);
    await this.#weights.leave(runId);
  }

  /** This worker leaves: drops the samples in flight and starts no new ones. */
  async requeue(because: string): Promise<void> {
    const leaving = new PreemptedError('Leaving', `requeued: ${because}`);
    this.#leaving = leaving;
    await this.#samplers.interruptAll(leaving);
  }

  /** Resolves when the state is copied; training continues while the copy is written. */
  checkpoint(state: RunState, context: JobContext, iteration: number): Promise<Save> {
    return this.#saves.begin(state, context, iteration);
  }

  /** A checkpoint is due after the present job: allocates the memory for its copy. */
  prepareCheckpoint(state: RunState): void {
    this.#saves.prepare(state);
  }

  /** Key of this state's manifest, after a write in progress has ended; undefined when there is none. */
  savedCheckpoint(context: JobContext, state: Digest): Promise<string | undefined> {
    return this.#saves.find(context, state);
  }

  /** Finishes, on leaving, the checkpoints being written, and writes the state in memory if there is time. */
  saveLast(inTime: boolean): Promise<{ readonly runId?: RunId; readonly text: string }> {
    return this.#saves.last(inTime, () => this.#models.trained);
  }

  /** This process works for the run: it may give its weights to others that do, and get them from these. */
  trust(runId: string, secret: string): void {
    this.#weights.trust(runId, secret);
  }

  weightsSecretOf(runId: string): string | undefined {
    return this.#weights.secretOf(runId);
  }

  /** Weights for others that are in memory, or come into it now or soon. */
  readableWeights(runId: string, publication: string): Promise<ReadableWeights | undefined> {
    return this.#weights.readable(runId, publication);
  }

  /** Writes the policy's weights for workers outside this process. */
  publishWeights(state: RunState, context: JobContext, wanted?: Publication): Promise<string> {
    return this.#weights.publish(state, context, wanted);
  }

  /** An update of a run was committed whose earlier weights this process may have. */
  async prefetch(committed: NewWeights, holders: readonly string[]): Promise<void> {
    if (this.#leaving === undefined) await this.#weights.prefetch(committed, holders);
  }

  /** The run paused or ended: frees its memory. */
  release(runId: RunId): Promise<void> {
    return this.#models.release(runId);
  }

  /** Another trainer trains these components of the run: frees their memory. */
  releasePart(runId: RunId, components: readonly string[]): Promise<void> {
    return this.#models.releasePart(runId, components);
  }

  #throwIfLeaving(): void {
    if (this.#leaving !== undefined) throw this.#leaving;
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
