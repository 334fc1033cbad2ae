/** The checkpoints that a process is writing. A state that is being written already is not written twice. */
import type { Digest, RunId } from '../../../core/ids.ts';
import type { Store } from '../../../core/ports/store.ts';
import { keys } from '../../../core/records/keys.ts';
import type { CheckpointOutput } from '../../../core/wire/jobs/index.ts';
import { isCheckpoint } from '../../../log/objects/manifests.ts';
import type { JobContext } from '../job/context.ts';
import { CheckpointWriter } from '../state/checkpoint-writer.ts';
import type { RunState } from '../state/state.ts';
import type { TrainedState } from './models.ts';

/** A checkpoint that is being written. */
export interface Save {
  readonly written: Promise<CheckpointOutput>;
}

export interface SavesPorts {
  readonly store: (url: string) => Promise<Store>;
  readonly ticks: SharedArrayBuffer;
  /** Called with the duration of each write. */
  readonly onSaved: (ms: number) => void;
  /** Does the state have only a part of its run's components? Then only the shards are written. */
  readonly isPart: (state: RunState) => boolean;
}

/** A fork has the state of its origin. */
const idOf = ({ runId, store }: Pick<JobContext, 'runId' | 'store'>, iteration: number, state: Digest) =>
  `${store} ${runId} ${iteration} ${state}`;

export class Saves {
  readonly #ports: SavesPorts;
  readonly #writer: CheckpointWriter;
  /** The writes in progress, by run, position and state. */
  readonly #saving = new Map<string, Promise<CheckpointOutput>>();

  constructor(ports: SavesPorts) {
    this.#ports = ports;
    this.#writer = new CheckpointWriter(ports.ticks);
  }

  /** Resolves when the state is copied; training continues while the copy is written. */
  async begin(state: RunState, context: JobContext, iteration: number): Promise<Save> {
    const digests = state.tag;
    if (digests === undefined) throw new Error('only a clean state is saved');
    const id = idOf(context, iteration, digests.stateDigest);
    const known = this.#saving.get(id);
    if (known !== undefined) return { written: known };
    const { runId, store, at } = context;
    const place = { store, runId, term: at.term, iteration, isPart: this.#ports.isPart(state) };
    const copied = this.#writer.write(place, state, digests);
    const written = copied
      .then(({ written }) => written)
      .then(({ saved, ms }) => {
        this.#ports.onSaved(ms);
        return saved;
      })
      .finally(() => this.#saving.delete(id));
    this.#saving.set(id, written);
    written.catch(() => {}); // the caller sees the error of the copy first
    await copied;
    return { written };
  }

  /** A checkpoint is due after the present job: allocates the memory for its copy. */
  prepare(state: RunState): void {
    this.#writer.prepare(state.engine, Object.keys(state.engines)[0]);
  }

  /** Frees the memory for copies. */
  release(): void {
    this.#writer.release();
  }

  /** Key of this state's manifest, after a write in progress has ended; undefined when there is none. */
  async find(context: JobContext, state: Digest): Promise<string | undefined> {
    await this.#saving.get(idOf(context, context.at.iteration, state));
    const key = keys.checkpoint(context.runId, context.at.iteration, state);
    return (await isCheckpoint(await this.#ports.store(context.store), key)) ? key : undefined;
  }

  /**
   * Finishes, on leaving, the checkpoints being written, and writes the state in memory if there is time. It leaves out
   * a part of a state, since a checkpoint has all of it.
   */
  async last(
    inTime: boolean,
    trained: () => readonly TrainedState[],
  ): Promise<{ readonly runId?: RunId; readonly text: string }> {
    await Promise.allSettled(this.#saving.values());
    const whole = trained().find(({ isPart }) => !isPart);
    const [state, place] = [whole?.state, whole?.place];
    if (state?.tag === undefined || place === undefined || place.iteration === 0) return { text: 'nothing to save' };
    const { runId } = place.context;
    const at = { ...place.context, at: { ...place.context.at, iteration: place.iteration } };
    if ((await this.find(at, state.tag.stateDigest)) !== undefined)
      return { runId, text: `checkpoint ${place.iteration} is saved` };
    if (!inTime) return { runId, text: `no time to save checkpoint ${place.iteration}` };
    await (await this.begin(state, place.context, place.iteration)).written;
    return { runId, text: `checkpoint ${place.iteration} saved` };
  }
}
