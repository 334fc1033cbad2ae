/** The models that a process trains, and those that do not learn. They are opened for a job and kept for the next. */
import type { Digest, RunId } from '../../../core/ids.ts';
import type { ModelRef } from '../../../core/ports/engines.ts';
import type { HeadKind, PolicyEngine, ScoringModel } from '../../../core/ports/policy.ts';
import { blockHashOf } from '../../../core/records/block-hash.ts';
import { publishedFormat } from '../../../core/records/publications.ts';
import type { NumericProfile } from '../../../core/records/schema.ts';
import type { Trains } from '../../../core/wire/jobs/index.ts';
import { kindOf } from '../engines/profile.ts';
import type { Samplers } from '../generation/samplers.ts';
import type { JobContext } from '../job/context.ts';
import { RunState } from '../state/state.ts';
import type { EngineChoice } from './engine-choice.ts';
import type { HostFiles } from './files.ts';

/** What a frozen model is for. */
export type FrozenRole = 'reference' | 'teacher' | 'rewardModel';

/** What a job says of the models that its run trains. */
export interface TrainedModels extends Trains {
  readonly model: Digest;
  readonly profile: NumericProfile;
}

/** A state that the process trains. */
export interface TrainedState {
  readonly runId: RunId;
  readonly profile: string;
  readonly state: RunState;
  /** Other components of the run are not in it. */
  readonly isPart: boolean;
  /** The state's position in its run's log, while it is clean. */
  place?: { readonly context: JobContext; readonly iteration: number };
}

export interface ModelsPorts {
  readonly files: HostFiles;
  readonly engines: EngineChoice;
  readonly samplers: Samplers;
  /** Name of this process among all others. */
  readonly incarnation: string;
  readonly tick: () => void;
  /** A trained state is no longer in memory. */
  readonly stateGone: () => void;
  /** The run needs nothing here any more. */
  readonly runGone: () => Promise<void>;
}

const partKey = ({ components }: Trains): string => (components ?? ['actor']).join(' ');

/** The head of each component of a run. A reward model beside a policy is implicit: it gives log-probs. */
function headOf(component: string, all: readonly string[]): HeadKind {
  if (component === 'actor') return 'tokens';
  if (component === 'rewardModel') return all.includes('actor') ? 'tokens' : 'scores';
  return 'values';
}

export class Models {
  readonly #ports: ModelsPorts;
  /** The states of one run that this process trains, by the names of their components: several where it is divided. */
  readonly #trained = new Map<string, TrainedState>();
  readonly #frozen = new Map<FrozenRole, { readonly key: string; readonly engine: PolicyEngine }>();

  constructor(ports: ModelsPorts) {
    this.#ports = ports;
  }

  get trained(): readonly TrainedState[] {
    return [...this.#trained.values()];
  }

  /** The state of the run, in memory or opened now: then its content is undefined. */
  async stateOf(context: JobContext, { model, profile, components, part }: TrainedModels): Promise<RunState> {
    const { runId } = context;
    const key = partKey({ ...(components && { components }) });
    const known = this.#trained.get(key);
    if (known?.runId === runId && known.profile === kindOf(profile) && known.state.model === model) return known.state;
    const isMate = (other: TrainedState) => other.runId === runId && other.isPart && part === true;
    for (const [name, other] of this.#trained) if (name === key || !isMate(other)) await this.release(other.runId);
    const folder = await this.#ports.files.modelFolder(context, model, 'opening');
    const engines = await this.#openComponents(folder, profile, components ?? ['actor']);
    const { id, engine, naming } = profile;
    const lineage = { profile: id, engine, incarnation: this.#ports.incarnation };
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

  /**
   * Notes that the state is at this position of its run now; `isLogged`: the log has, or gets, just this state there.
   */
  standsAt(state: RunState, context: JobContext, iteration: number, isLogged: boolean): void {
    for (const trained of this.#trained.values()) {
      if (trained.state !== state) continue;
      if (isLogged) trained.place = { context, iteration };
      else delete trained.place;
    }
  }

  /** Does the state have only a part of its run's components? */
  isPart(state: RunState): boolean {
    return this.trained.some((trained) => trained.state === state && trained.isPart);
  }

  /**
   * A model that does not learn, one in each role. It gives log-probs, as a reward model a score of whole responses.
   * The reference of a policy that trains an adapter here is that policy with its adapter off.
   */
  async frozen(role: FrozenRole, context: JobContext, model: Digest, profile: NumericProfile): Promise<ScoringModel> {
    const base = role === 'reference' ? this.#baseOf(context, model, profile) : undefined;
    if (base !== undefined) return base;
    const key = `${model} ${kindOf(profile)}`;
    const known = this.#frozen.get(role);
    if (known?.key === key) return known.engine;
    this.#frozen.delete(role);
    if (known !== undefined) await this.#close(known.engine);
    const engine = await this.#load(context, model, profile, role === 'rewardModel' ? 'scores' : 'tokens');
    this.#frozen.set(role, { key, engine });
    return engine;
  }

  /** The run paused or ended: frees its memory. */
  async release(runId: RunId): Promise<void> {
    const states = this.trained;
    if (!states.some((trained) => trained.runId === runId)) return;
    const frozen = [...this.#frozen.values()].map(({ engine }) => engine);
    const engines = [...states.flatMap(({ state }) => Object.values(state.engines)), ...frozen];
    this.#trained.clear();
    this.#frozen.clear();
    this.#ports.stateGone();
    await this.#ports.runGone();
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

  /** The model itself, where it is the base of an adapter that the process trains for the run. */
  #baseOf({ runId }: JobContext, model: Digest, profile: NumericProfile): ScoringModel | undefined {
    for (const { runId: own, profile: kind, state } of this.trained)
      if (own === runId && kind === kindOf(profile) && state.model !== model && state.engines['actor'] !== undefined)
        return state.engines['actor'].base;
    return undefined;
  }

  async #openComponents(
    folder: string,
    profile: NumericProfile,
    names: readonly string[],
  ): Promise<Record<string, PolicyEngine>> {
    const engines: Record<string, PolicyEngine> = {};
    try {
      for (const name of names) engines[name] = await this.#open({ folder, head: headOf(name, names) }, profile, true);
      return engines;
    } catch (error) {
      for (const engine of Object.values(engines)) await this.#close(engine);
      throw error;
    }
  }

  async #load(context: JobContext, model: Digest, profile: NumericProfile, head: HeadKind): Promise<PolicyEngine> {
    const folder = await this.#ports.files.modelFolder(context, model);
    const engine = await this.#open({ folder, head }, profile, false);
    await engine.load({ type: 'folder', folder }, { tick: this.#ports.tick });
    return engine;
  }

  async #open(model: ModelRef, profile: NumericProfile, trainable: boolean): Promise<PolicyEngine> {
    const { engines } = this.#ports;
    const engine = await engines.serving(profile).open(model, { ...engines.optionsFor(profile), trainable });
    void engine.exited.then(() => this.#forget(engine));
    return engine;
  }

  /** An engine that has ended by itself: the next job that needs its model loads it again. */
  #forget(engine: PolicyEngine): void {
    this.#ports.samplers.forget(engine);
    for (const [role, known] of this.#frozen) if (known.engine === engine) this.#frozen.delete(role);
    for (const [key, { state }] of this.#trained) {
      const mates = Object.values(state.engines);
      if (!mates.includes(engine)) continue;
      for (const mate of mates) if (mate !== engine) this.#close(mate).catch(() => {}); // it may have ended, too
      this.#trained.delete(key);
      this.#ports.stateGone();
    }
  }

  /** Closes what samples from the model first. */
  async #close(engine: PolicyEngine): Promise<void> {
    await this.#ports.samplers.close(engine);
    await engine.close();
  }
}
