/**
 * Samples that are scored before their reward job exists, because they have ended while others of their rollout job are
 * sampled. The outcomes stay in memory until the reward job takes them. They are only a head start: a sample that is
 * not here, or is lost with the process, is scored by the reward job.
 */
import type { ScoreOutcome } from '../../rewards/host/scorer-host.ts';

export interface AheadLimits {
  /** Runs whose samples are scored at the same time. */
  readonly runs: number;
  /** Bytes of all samples together: their tokens while they wait, their outcomes later. */
  readonly bytes: number;
}

const usualAheadLimits: AheadLimits = { runs: 2, bytes: 64 * 2 ** 20 };

/** Rollout jobs that are named: more than a run has at a time. */
const mostJobs = 64;
/** Runs that are remembered as ended, by last end. */
const keptEnds = 64;

export interface AheadSample {
  /** Key made of the scorer, its settings, the sample and its tokens. */
  readonly key: string;
  readonly runId: string;
  /** The rollout job. */
  readonly jobId: string;
  readonly bytes: number;
  readonly score: (signal: AbortSignal) => Promise<ScoreOutcome>;
}

interface Kept {
  readonly sample: AheadSample;
  bytes: number;
  /** Undefined while it waits for its turn. Resolves with undefined when it could not be scored. */
  outcome?: Promise<ScoreOutcome | undefined>;
  done: boolean;
}

/** The samples of one run that are not scored yet. */
interface Lane {
  readonly waiting: Kept[];
  readonly ended: AbortController;
  running: number;
}

export class ScoringAhead {
  readonly #limits: AheadLimits;
  readonly #changed: () => void;
  /** Kept samples by key, oldest first. */
  readonly #kept = new Map<string, Kept>();
  readonly #lanes = new Map<string, Lane>();
  /** Runs that were cancelled or paused, or whose scorer failed, and of which no reward job has come since. */
  readonly #ended = new Set<string>();
  #bytes = 0;
  #jobs = '';

  /** `changed`: the list of jobs is another one. */
  constructor(changed: () => void = () => {}, limits = usualAheadLimits) {
    this.#changed = changed;
    this.#limits = limits;
  }

  /** The last rollout jobs with samples here. */
  get jobs(): readonly string[] {
    return [...new Set([...this.#kept.values()].map(({ sample }) => sample.jobId))].slice(-mostJobs);
  }

  /**
   * Scores the samples when it is their turn, `parallel` of a run at a time. Samples that are here already are left as
   * they are; all are left out when the run has ended, or too many runs score ahead. `failed` gets the error after
   * which no sample of the run is scored ahead until its next reward job.
   */
  add(runId: string, samples: readonly AheadSample[], parallel: number, failed: (error: unknown) => void): void {
    if (this.#ended.has(runId)) return;
    if (!this.#lanes.has(runId) && this.#lanes.size >= this.#limits.runs) return;
    const lane = this.#lanes.get(runId) ?? { waiting: [], ended: new AbortController(), running: 0 };
    this.#lanes.set(runId, lane);
    for (const sample of samples) {
      if (this.#kept.has(sample.key) || !this.#makeRoom(sample.bytes)) continue;
      const kept: Kept = { sample, bytes: sample.bytes, done: false };
      this.#kept.set(sample.key, kept);
      this.#bytes += sample.bytes;
      lane.waiting.push(kept);
    }
    for (let free = parallel - lane.running; free > 0 && lane.waiting.length > 0; free--)
      void this.#work(runId, lane, failed);
    this.#closeIfIdle(runId, lane);
    this.#tell();
  }

  /**
   * The outcome of a sample that was or is being scored; undefined for any other one, which nobody scores here any
   * more.
   */
  take(key: string): Promise<ScoreOutcome | undefined> | undefined {
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.outcome === undefined) this.#forget(kept);
    return kept?.outcome;
  }

  /** The outcomes are in a committed result. */
  release(keys: Iterable<string>): void {
    for (const key of keys) {
      const kept = this.#kept.get(key);
      if (kept !== undefined) this.#forget(kept);
    }
    this.#tell();
  }

  /** A reward job of the run works here, so the run has not ended. */
  isAlive(runId: string): void {
    this.#ended.delete(runId);
  }

  /** Another worker scores the samples of this rollout job. */
  taken(runId: string, jobId: string): void {
    for (const kept of [...this.#kept.values()])
      if (kept.sample.runId === runId && kept.sample.jobId === jobId) this.#forget(kept);
    this.#tell();
  }

  /** The run has paused or ended: kills the scorers that work for its samples, and forgets all of them. */
  drop(runId: string): void {
    this.#end(runId);
    for (const kept of [...this.#kept.values()]) if (kept.sample.runId === runId) this.#forget(kept);
    const lane = this.#lanes.get(runId);
    this.#lanes.delete(runId);
    lane?.ended.abort(new Error(`${runId} has ended`));
    this.#tell();
  }

  close(): void {
    for (const runId of [...this.#lanes.keys()]) this.drop(runId);
  }

  /** One sample after the other. */
  async #work(runId: string, lane: Lane, failed: (error: unknown) => void): Promise<void> {
    lane.running += 1;
    for (let kept = lane.waiting.shift(); kept !== undefined; kept = lane.waiting.shift()) {
      kept.outcome = this.#score(lane, kept, failed);
      await kept.outcome;
    }
    lane.running -= 1;
    this.#closeIfIdle(runId, lane);
  }

  async #score(lane: Lane, kept: Kept, failed: (error: unknown) => void): Promise<ScoreOutcome | undefined> {
    try {
      const outcome = await kept.sample.score(lane.ended.signal);
      kept.done = true;
      if (this.#kept.get(kept.sample.key) === kept) this.#resize(kept, JSON.stringify(outcome).length);
      return outcome;
    } catch (error) {
      for (const one of [kept, ...lane.waiting]) this.#forget(one);
      if (lane.ended.signal.aborted) return undefined;
      this.#end(kept.sample.runId); // other samples would fail just so
      failed(error);
      return undefined;
    }
  }

  #end(runId: string): void {
    this.#ended.delete(runId);
    this.#ended.add(runId);
    for (const old of [...this.#ended].slice(0, -keptEnds)) this.#ended.delete(old);
  }

  #closeIfIdle(runId: string, lane: Lane): void {
    if (lane.running === 0 && lane.waiting.length === 0 && this.#lanes.get(runId) === lane) this.#lanes.delete(runId);
  }

  /** Forgets the oldest outcomes. False when that is not enough. */
  #makeRoom(bytes: number): boolean {
    for (const kept of this.#kept.values()) {
      if (this.#bytes + bytes <= this.#limits.bytes) break;
      if (kept.done) this.#forget(kept);
    }
    return this.#bytes + bytes <= this.#limits.bytes;
  }

  #resize(kept: Kept, bytes: number): void {
    this.#bytes += bytes - kept.bytes;
    kept.bytes = bytes;
  }

  #forget(kept: Kept): void {
    const { key, runId } = kept.sample;
    if (this.#kept.get(key) === kept) {
      this.#kept.delete(key);
      this.#bytes -= kept.bytes;
    }
    const waiting = this.#lanes.get(runId)?.waiting;
    const place = waiting?.indexOf(kept) ?? -1;
    if (place >= 0) waiting?.splice(place, 1);
  }

  #tell(): void {
    const jobs = this.jobs.join(' ');
    if (jobs === this.#jobs) return;
    this.#jobs = jobs;
    this.#changed();
  }
}
