/** Checkpoints that belong to a run's committed log. */
import { isDamage } from '../../core/records/damage.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { checkpointIn, keys } from '../../core/records/keys.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import type { CheckpointManifest, TermRecord } from '../../core/records/schema.ts';
import { readRecord } from '../objects/records.ts';
import type { Stored } from '../objects/records.ts';
import type { LogEnd } from './lineage.ts';

/** A checkpoint that belongs to the log, by its name. */
export interface CheckpointName {
  readonly iteration: number;
  readonly stateDigest: string;
  readonly key: string;
}

/** The part of RunLog that is needed here. */
interface CheckpointSource {
  readonly store: Store;
  readonly runId: RunId;
  head(): Promise<LogEnd | undefined>;
  first(): Promise<number>;
  at(position: number, newest: TermRecord): Promise<{ readonly stateDigest: Digest }>;
}

/** The checkpoints of one run's committed log. */
export class RunCheckpoints {
  readonly #log: CheckpointSource;

  constructor(log: CheckpointSource) {
    this.#log = log;
  }

  /**
   * Names of the checkpoints up to a position, newest first, read one by one. Manifests are not read: the log gives the
   * state of each iteration, so checkpoints of abandoned iterations are recognised and left out.
   */
  async *eachName(upTo = Number.POSITIVE_INFINITY): AsyncGenerator<CheckpointName> {
    const { store, runId } = this.#log;
    const listed = (await store.children(keys.checkpoints(runId)))
      .map(checkpointIn)
      .filter((named) => named !== undefined)
      .filter(({ iteration }) => iteration <= upTo)
      .sort((a, b) => b.iteration - a.iteration);
    if (listed.length === 0) return;
    const head = await this.#log.head();
    if (head === undefined) return;
    const first = await this.#log.first();
    for (const { iteration, stateDigest } of listed) {
      if (iteration > head.position || iteration < first) continue;
      const at = await unlessDamaged(this.#log.at(iteration, head.termRecord));
      if (at?.stateDigest === stateDigest)
        yield { iteration, stateDigest, key: keys.checkpoint(runId, iteration, stateDigest) };
    }
  }

  /** Does what eachName does, as a list. */
  async names(upTo?: number): Promise<CheckpointName[]> {
    const names: CheckpointName[] = [];
    for await (const name of this.eachName(upTo)) names.push(name);
    return names;
  }

  async newestName(upTo?: number): Promise<CheckpointName | undefined> {
    for await (const name of this.eachName(upTo)) return name;
    return undefined;
  }

  /** Manifests, newest first. Unreadable ones are left out. */
  async all(upTo?: number): Promise<Stored<CheckpointManifest>[]> {
    const found: Stored<CheckpointManifest>[] = [];
    for await (const { iteration, stateDigest } of this.eachName(upTo)) {
      const manifest = await this.manifestOf(iteration, stateDigest);
      if (manifest !== undefined) found.push(manifest);
    }
    return found;
  }

  /** The newest checkpoint whose manifest can be read. */
  async newest(): Promise<Stored<CheckpointManifest> | undefined> {
    for await (const { iteration, stateDigest } of this.eachName()) {
      const manifest = await this.manifestOf(iteration, stateDigest);
      if (manifest !== undefined) return manifest;
    }
    return undefined;
  }

  /** The manifest of this state; undefined when it is missing, unreadable, or does not match its name. */
  async manifestOf(iteration: number, stateDigest: Digest): Promise<Stored<CheckpointManifest> | undefined> {
    const { store, runId } = this.#log;
    const key = keys.checkpoint(runId, iteration, stateDigest);
    const found = await unlessDamaged(readRecord(store, key, checkpointManifest));
    const same =
      found?.record.runId === runId && found.record.iteration === iteration && found.record.stateDigest === stateDigest;
    return same ? found : undefined;
  }
}

/** The value, or undefined for damage: for objects that the log can do without. */
async function unlessDamaged<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}
