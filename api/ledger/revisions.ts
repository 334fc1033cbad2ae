/** The recipe revisions of a run: numbered from 1 without gaps, and used by the terms that name them. */
import type { Objects } from './objects.ts';
import { revisionShape } from './records.ts';
import type { Batch, Revision, Term } from './records.ts';
import type { Branch } from './terms.ts';

export class Revisions {
  readonly #objects: Objects;
  readonly #all: ReadonlyMap<number, Revision | undefined>;
  #used = 1;

  private constructor(objects: Objects, all: ReadonlyMap<number, Revision | undefined>) {
    this.#objects = objects;
    this.#all = all;
  }

  /** `begun`: the run has a state. Before that, perhaps only its id was claimed. */
  static async read(objects: Objects, runId: string, begun: boolean): Promise<Revisions> {
    const all = new Map<number, Revision | undefined>();
    for (let n = 1; ; n++) {
      const found = await objects.find(objects.keys.revision(n), revisionShape);
      if (found.type === 'absent') {
        if (n === 1 && begun) objects.faults.add(found.key, 'the recipe of the run', 'nothing');
        return new Revisions(objects, all);
      }
      all.set(n, found.type === 'read' ? found.record : undefined);
      if (found.type !== 'read') continue;
      objects.faults.equal(found.key, 'runId', runId, found.record.runId);
      objects.faults.equal(found.key, 'revision', n, found.record.revision);
    }
  }

  /** The revision of the newest term. A newer revision that no term names has no effect. */
  inForce(newest: Branch | undefined): Revision | undefined {
    return this.#all.get(newest?.term.revision ?? 1);
  }

  get every(): readonly Revision[] {
    return [...this.#all.values()].filter((one) => one !== undefined);
  }

  /** The revision that a batch names must be its term's. Along the log the number never falls. */
  of(batch: Batch, term: Term, key: string): Revision | undefined {
    const { faults } = this.#objects;
    faults.equal(key, 'revision of its term:', term.revision ?? 1, batch.revision);
    if (!this.#all.has(batch.revision))
      faults.add(key, `a revision from 1 to ${this.#all.size}`, String(batch.revision));
    if (batch.revision < this.#used)
      faults.add(key, `revision ${this.#used} or newer, as in the batches before`, String(batch.revision));
    this.#used = Math.max(this.#used, batch.revision);
    return this.#all.get(batch.revision);
  }
}
