/** What a checkpoint costs training: an update alone, compared with an update during which a checkpoint is written. */
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeRunId } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import { CheckpointWriter } from '../../workers/engine/state/checkpoint-writer.ts';
import { NativePolicy } from '../../workers/engine/engines/native/policy.ts';
import { RunState } from '../../workers/engine/state/state.ts';
import { secondsUntil } from '../clock.ts';
import type { Measurement, Values } from '../measurement.ts';
import { sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';
import { TrainingStep } from '../training-step.ts';

/**
 * An update is an optimiser step and the digest of the new state. With a checkpoint: the copy, then an update while it
 * is written.
 */
export function checkpointCost(size: SizeName): Measurement {
  const name = `checkpoint.${size}`;
  return {
    name,
    rows: [
      { name: `${name}.update`, unit: 's' },
      { name: `${name}.updateBeside`, unit: 's' },
      { name: `${name}.blocked`, unit: 's' },
      { name: `${name}.save`, unit: 's' },
    ],
    turns: 3,
    compare: { [`${name}.updateBeside`]: `${name}.update`, [`${name}.blocked`]: `${name}.update` },
    async open(settings) {
      const folder = await mkdtemp(join(tmpdir(), 'petrel-bench-checkpoint-'));
      await mkdir(join(folder, keys.runs)); // processes that serve runs do not accept an empty folder as a store
      const bench = new CheckpointBench(name, folder, new TrainingStep(sizeOf(size, settings.quick), settings));
      await bench.update();
      const { blocked } = await bench.saveBeside(async () => {});
      return {
        about: `the first checkpoint blocked ${blocked.toFixed(2)} s`,
        turn: () => bench.turn(),
        close: async () => bench.close(),
      };
    },
  };
}

class CheckpointBench {
  readonly #name: string;
  readonly #folder: string;
  readonly #step: TrainingStep;
  readonly #policy: NativePolicy;
  readonly #state: RunState;
  readonly #writer = new CheckpointWriter();
  #iteration = 0;

  constructor(name: string, folder: string, step: TrainingStep) {
    this.#name = name;
    this.#folder = folder;
    this.#step = step;
    this.#policy = new NativePolicy(step.trainer);
    this.#state = new RunState({ actor: this.#policy }, '0'.repeat(64));
    this.#writer.prepare(this.#policy);
  }

  async update(): Promise<void> {
    this.#state.markDirty();
    this.#step.take();
    await this.#state.seal();
  }

  async turn(): Promise<Values> {
    const update = await secondsUntil(() => this.update());
    const { blocked, beside, save } = await this.saveBeside(() => this.update());
    const name = this.#name;
    return {
      [`${name}.update`]: update,
      [`${name}.updateBeside`]: blocked + beside,
      [`${name}.blocked`]: blocked,
      [`${name}.save`]: save,
    };
  }

  /** Seconds of the copy, of the update during the writing, and of the writing itself. */
  async saveBeside(
    work: () => Promise<void>,
  ): Promise<{ readonly blocked: number; readonly beside: number; readonly save: number }> {
    const { tag } = this.#state;
    if (tag === undefined) throw new Error('only a clean state is saved');
    const place = {
      store: pathToFileURL(this.#folder).href,
      runId: makeRunId('bench', new Date(0), '0000'),
      term: 1,
      iteration: ++this.#iteration,
    };
    const started = performance.now();
    const { written } = await this.#writer.write(place, this.#state, tag);
    const blocked = (performance.now() - started) / 1000;
    const beside = await secondsUntil(work);
    const { ms } = await written;
    rmSync(join(this.#folder, keys.runs, place.runId), { recursive: true });
    return { blocked, beside, save: ms / 1000 };
  }

  close(): void {
    this.#writer.release();
    this.#step.close();
    rmSync(this.#folder, { recursive: true });
  }
}
