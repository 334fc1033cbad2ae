/** The recipe revisions of a run: dense from 1, each valid after a position. */
import type { Objects } from './objects.ts';
import { revisionShape } from './records.ts';
import type { Batch, Revision } from './records.ts';

export class Revisions {
  readonly #objects: Objects;
  readonly #all: ReadonlyMap<number, Revision | undefined>;
  #used = 1;

  private constructor(objects: Objects, all: ReadonlyMap<number, Revision | undefined>) {
    this.#objects = objects;
    this.#all = all;
  }

  static async read(objects: Objects, runId: string): Promise<Revisions> {
    const all = new Map<number, Revision | undefined>();
    for (let n = 1; ; n++) {
      const found = await objects.find(objects.keys.revision(n), revisionShape);
      if (found.type === 'absent') {
        if (n === 1) objects.faults.add(found.key, 'the recipe of the run', 'nothing');
        return new Revisions(objects, all);
      }
      all.set(n, found.type === 'read' ? found.record : undefined);
      if (found.type !== 'read') continue;
      objects.faults.equal(found.key, 'runId', runId, found.record.runId);
      objects.faults.equal(found.key, 'revision', n, found.record.revision);
      if (n === 1) objects.faults.equal(found.key, 'fromPosition', 0, found.record.fromPosition);
    }
  }

  /** The newest one that can be read. */
  get newest(): Revision | undefined {
    return [...this.#all.values()].findLast((one) => one !== undefined);
  }

  get every(): readonly Revision[] {
    return [...this.#all.values()].filter((one) => one !== undefined);
  }

  /** The revision that a batch names. Along the log they only go up, and none is used before it is valid. */
  of(batch: Batch, key: string): Revision | undefined {
    const { faults } = this.#objects;
    if (!this.#all.has(batch.revision)) faults.add(key, `a revision from 1 to ${this.#all.size}`, String(batch.revision));
    if (batch.revision < this.#used) faults.add(key, `revision ${this.#used} or newer, as in the batches before`, String(batch.revision));
    this.#used = Math.max(this.#used, batch.revision);
    const revision = this.#all.get(batch.revision);
    if (revision !== undefined && batch.iteration <= revision.fromPosition) {
      faults.add(key, `a revision that is valid for iteration ${batch.iteration}`, `revision ${batch.revision}, valid after position ${revision.fromPosition}`);
    }
    return revision;
  }
}
