/** How far back a run can go: to the oldest of the newest verified checkpoints that its recipe keeps. */
import { createHash } from 'node:crypto';
import { isDamage } from '../../core/records/damage.ts';
import type { Digest } from '../../core/ids.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { shardsOf } from '../../core/records/components.ts';
import { checkpointIn, keys } from '../../core/records/keys.ts';
import { checkpointManifest, pin } from '../../core/records/schema.ts';
import type { Pin, RetentionEntry } from '../../core/records/schema.ts';
import { readRecord } from '../objects/records.ts';
import type { CheckpointName } from '../run/run-checkpoints.ts';
import type { RunLog } from '../run/run-log.ts';
import { livePins } from '../run/retention-log.ts';

/** The least number of checkpoints is two, because a single one is lost with its first damaged byte. */
export const fewestCheckpoints = 2;

export interface RetentionRule {
  /** Newest verified checkpoints that are kept; null: all of them, and the base. */
  readonly checkpoints: number | null;
  readonly batches: 'since_oldest_checkpoint' | 'all';
}

export async function ruleOf(log: RunLog): Promise<RetentionRule> {
  const { trainer } = parseRecipe((await log.revision()).recipe);
  return {
    checkpoints: trainer.max_actor_ckpt_to_keep && Math.max(fewestCheckpoints, trainer.max_actor_ckpt_to_keep),
    batches: trainer.keep_batches,
  };
}

/** The new floor, and the checkpoints that were read to find it. The floor never falls and never passes a pin. */
export async function floorOf(
  log: RunLog,
  rule: RetentionRule,
  entry: RetentionEntry,
  now: Date,
): Promise<Pick<RetentionEntry, 'floor' | 'verified'>> {
  const unchanged = { floor: entry.floor, verified: entry.verified };
  if (rule.checkpoints === null) return unchanged;
  const whole = new WholeCheckpoints(log, entry.verified);
  if (((await whole.name(rule.checkpoints - 1))?.iteration ?? 0) <= entry.floor) return unchanged;
  const newest = await whole.upTo(Number.POSITIVE_INFINITY, rule.checkpoints);
  if (newest.length < rule.checkpoints) return { floor: entry.floor, verified: whole.keys(entry.floor) };
  const reached = [newest.at(-1)];
  for (const { position } of [...livePins(entry, now), ...(await forksInTheMaking(log))])
    reached.push((await whole.upTo(position, 1))[0]);
  const floor = Math.max(entry.floor, Math.min(...reached.map((one) => one?.iteration ?? 0)));
  return { floor, verified: whole.keys(floor) };
}

/** A fork that is being created reads everything up to its position. */
async function forksInTheMaking({ store, runId }: RunLog): Promise<Pin[]> {
  const pins = await Promise.all(
    (await store.children(keys.pins(runId))).map((name) => readRecord(store, keys.pins(runId) + name, pin)),
  );
  const done = async (by: string) =>
    (await store.head(keys.term(by, 1))) !== undefined || (await store.head(keys.tombstone(by))) !== undefined;
  const live = await Promise.all(
    pins.map(async (one) => (one === undefined || (await done(one.record.by)) ? [] : [one.record])),
  );
  return live.flat();
}

/** The checkpoints of the log, newest first, read on demand. Each shard is read once per object of this class. */
class WholeCheckpoints {
  readonly #log: RunLog;
  readonly #names: CheckpointName[] = [];
  readonly #more: AsyncGenerator<CheckpointName>;
  readonly #known: Map<string, boolean>;

  constructor(log: RunLog, verified: readonly string[]) {
    this.#log = log;
    this.#more = log.checkpoints.eachName();
    this.#known = new Map(verified.map((key) => [key, true]));
  }

  /** undefined when there are fewer. */
  async name(index: number): Promise<CheckpointName | undefined> {
    while (this.#names.length <= index) {
      const next = await this.#more.next();
      if (next.done === true) return undefined;
      this.#names.push(next.value);
    }
    return this.#names[index];
  }

  /** The newest `count` of them at or before a position. */
  async upTo(position: number, count: number): Promise<CheckpointName[]> {
    const found: CheckpointName[] = [];
    for (let index = 0; found.length < count; index++) {
      const name = await this.name(index);
      if (name === undefined) break;
      if (name.iteration <= position && (await this.#isWhole(name.key))) found.push(name);
    }
    return found;
  }

  /** Checkpoints that were verified and are kept. */
  keys(floor: number): string[] {
    return [...this.#known]
      .filter(([key, whole]) => whole && (checkpointIn(key)?.iteration ?? 0) >= floor)
      .map(([key]) => key);
  }

  async #isWhole(key: string): Promise<boolean> {
    const whole = this.#known.get(key) ?? (await isWhole(this.#log, key));
    this.#known.set(key, whole);
    return whole;
  }
}

/** Reads every shard of a checkpoint and compares it with its name. */
async function isWhole({ store, runId }: RunLog, key: string): Promise<boolean> {
  const manifest = await readRecord(store, key, checkpointManifest).catch((error: unknown) => {
    if (isDamage(error)) return undefined;
    throw error;
  });
  if (manifest === undefined) return false;
  for (const { blob } of shardsOf(manifest.record)) if ((await digestOfBlob(store, runId, blob)) !== blob) return false;
  return true;
}

/** Reads piece by piece, because a shard may be large and the process has other work. */
async function digestOfBlob(store: RunLog['store'], runId: string, digest: Digest): Promise<Digest | undefined> {
  const stream = await store.stream(keys.blob(runId, digest));
  if (stream === undefined) return undefined;
  const hash = createHash('sha256');
  for await (const piece of stream) hash.update(piece);
  return hash.digest('hex');
}
