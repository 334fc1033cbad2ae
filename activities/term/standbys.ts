/**
 * Standbys of runs with `trainer.standby: 1`. The update of a committed batch is a job of the trainer that leads the
 * run and, at the same time, a job of a second trainer that follows it. So the second one has the run's state in memory
 * when the first is lost, and leads from the next job on, without loading or replaying anything.
 *
 * In a deterministic run both compute the same bits. Where they do not, one of the two machines computes wrongly. The
 * update is then not committed: the run pauses and names both. In another run the standby keeps its own state, and when
 * it must lead, a new term begins with it (trainer-terms.ts).
 *
 * A run does not wait for a standby that is not there, that fails, or that has more than a few iterations to replay
 * first.
 */
import { queueWithNeeds } from '../../core/machine-needs.ts';
import { errorToJson, PauseError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import type { Presence } from '../../core/wire/messages.ts';
import type { JobRequest, JobResult } from '../../core/ports/jobs.ts';
import type { ActivityPorts } from '../ports/index.ts';
import type { Recompute } from './recompute.ts';

/**
 * Iterations that a standby may have to replay before an update for the run to wait. While it caught up, the run went
 * on by about so many.
 */
const mostBehind = 3;

type Update = JobRequest<'update'>;
type Updated = JobResult<'update'>;

export class Standbys {
  readonly #ports: ActivityPorts;
  readonly #recompute: Recompute;
  /** Maps a run to the newest result of its standby, whose state the standby has in memory. */
  readonly #reached = new Map<string, Reached>();
  /** Runs whose standby loads or replays at present, while the run goes on. */
  readonly #catchingUp = new Set<string>();
  /** Runs for which no second trainer was there at their last update. */
  readonly #alone = new Set<string>();
  /** Runs whose standby has a state of its own. */
  readonly #differing = new Set<string>();
  /** Maps a run to what a standby that was catching up has found. */
  readonly #found = new Map<string, PauseError>();

  constructor(ports: ActivityPorts, recompute: Recompute) {
    this.#ports = ports;
    this.#recompute = recompute;
  }

  /**
   * `lead`: runs the update on the trainer that leads. Throws PauseError `TrainersDiffer` when the two results differ,
   * and `DivergentReplay` when the standby cannot repeat what was committed before.
   */
  async update(request: Update, signal: AbortSignal, lead: () => Promise<Updated>): Promise<Updated> {
    const { runId } = request;
    const found = this.#found.get(runId);
    this.#found.delete(runId);
    if (found !== undefined) throw found;
    for (let isFirst = true; ; isFirst = false) {
      const following = await this.#begin(request);
      if (following === undefined) return lead();
      const isOld = isFirst && (await this.#isDone(request, following.request));
      const led = await lead().catch((error: unknown) => {
        following.leave();
        throw error;
      });
      if (request.at.iteration - this.#reachedBy(runId, following.standby) > mostBehind) {
        void this.#letCatchUp(following, led);
        return led;
      }
      const stop = () => following.leave();
      signal.addEventListener('abort', stop, { once: true });
      const followed = await this.#settled(following).finally(() => signal.removeEventListener('abort', stop));
      signal.throwIfAborted();
      if (followed === undefined || this.#agree(request, led, followed)) return led;
      const differ = this.#recomputeBoth(request, following.request, led, followed);
      // Results that an earlier attempt has left are computed again before a person is asked.
      if (!isOld) throw differ;
    }
  }

  /** Asks a standby for the update; undefined when no trainer can be one now. */
  async #begin(request: Update): Promise<Following | undefined> {
    const { runId } = request;
    if (this.#catchingUp.has(runId)) return undefined;
    const able = (await this.#ports.listWorkers()).filter((one) => canTrain(one, request));
    const standby = able.find(({ lease, standsBy }) => lease === runId && standsBy === true);
    if (able.length >= 2) {
      this.#alone.delete(runId);
      return new Following(request, standby, this.#recompute);
    }
    if (!this.#alone.has(runId)) this.#say(request, 'warn', 'has no standby: no second trainer is free');
    this.#alone.add(runId);
    this.#reached.delete(runId);
    return undefined;
  }

  async #isDone(...requests: readonly Update[]): Promise<boolean> {
    const there = requests.map(({ store, runId, stage, input }) =>
      store.head(keys.result(runId, this.#ports.jobIdOf(stage, input))),
    );
    return (await Promise.all(there)).every((object) => object !== undefined);
  }

  /** The standby's result; undefined when it was lost or failed. */
  async #settled(following: Following): Promise<Updated | undefined> {
    const { request } = following;
    try {
      const followed = await following.untilDoneOrLost();
      if (followed === undefined) this.#isOut(request, 'was lost');
      return followed;
    } catch (error) {
      if (error instanceof PauseError && error.code === 'DivergentReplay') throw error;
      this.#isOut(request, `failed: ${errorToJson(error).message}`);
      return undefined;
    }
  }

  #isOut(request: Update, what: string): void {
    this.#reached.delete(request.runId);
    this.#say(request, 'warn', `its standby ${what}; the run goes on without one until another is ready`);
  }

  /** The run goes on; the update after this one, or a later one, finds the standby in step. */
  async #letCatchUp(following: Following, led: Updated): Promise<void> {
    const { request } = following;
    const { runId } = request;
    this.#catchingUp.add(runId);
    try {
      const followed = await following.result;
      if (this.#agree(request, led, followed))
        this.#say(
          request,
          'info',
          `its standby ${followed.by ?? ''} is ready, at iteration ${request.at.iteration + 1}`,
        );
      else this.#found.set(runId, trainersDiffer(request, led, followed));
    } catch (error) {
      if (error instanceof PauseError && error.code === 'DivergentReplay') this.#found.set(runId, error);
      else this.#say(request, 'debug', `its standby is not ready: ${errorToJson(error).message}`);
    } finally {
      this.#catchingUp.delete(runId);
    }
  }

  /** A run that is not deterministic may have its two trainers on machines that compute otherwise. */
  #agree(request: Update, led: Updated, followed: Updated): boolean {
    const { runId, at, input } = request;
    const isSame = led.output.stateDigest === followed.output.stateDigest;
    if (!isSame && input.profile.deterministic) return false;
    if (!isSame && !this.#differing.has(runId))
      this.#say(
        request,
        'info',
        'the last bits of its standby differ: if it must lead, a new term begins with its state',
      );
    if (isSame) this.#differing.delete(runId);
    else this.#differing.add(runId);
    this.#reached.set(runId, { iteration: at.iteration + 1, by: followed.by ?? '', endedAt: followed.endedAt ?? '' });
    return true;
  }

  /**
   * The iteration that is in the memory of this standby. Another worker, or another process of the same, may follow
   * now.
   */
  #reachedBy(runId: string, standby: Presence | undefined): number {
    const reached = this.#reached.get(runId);
    if (reached === undefined || standby === undefined) return Number.NEGATIVE_INFINITY;
    const { instance, worker, since } = standby;
    const isSame = [worker, `${instance}/${worker}`].includes(reached.by) && since < reached.endedAt;
    return isSame ? reached.iteration : Number.NEGATIVE_INFINITY;
  }

  /** A resume asks for both results again; until then both trainers have dropped their states. */
  #recomputeBoth(request: Update, ofStandby: Update, led: Updated, followed: Updated): PauseError {
    const error = trainersDiffer(request, led, followed);
    this.#reached.delete(request.runId);
    this.#recompute.again(request, led.jobId, error.message);
    this.#recompute.again(ofStandby, followed.jobId, error.message);
    return error;
  }

  #say({ runId }: Update, level: 'debug' | 'info' | 'warn', text: string): void {
    this.#ports.say(runId, level, `${runId}: ${text}`);
  }
}

interface Reached {
  readonly iteration: number;
  /** Name of the worker, and when its result was written, by its own clock. */
  readonly by: string;
  readonly endedAt: string;
}

/** The job of a standby, as long as somebody waits for it. */
class Following {
  readonly request: Update;
  /** The standby of the run; undefined while any free trainer may become it. */
  readonly standby: Presence | undefined;
  readonly result: Promise<Updated>;
  readonly #left = new AbortController();
  #isUnheld = false;
  #onUnheld: () => void = () => {};

  constructor(request: Update, standby: Presence | undefined, recompute: Recompute) {
    this.standby = standby;
    this.request = { ...request, input: { ...request.input, save: false, standby: true } };
    this.result = recompute.run(this.request, {
      signal: this.#left.signal,
      onProgress: (_, queuedBecause) => {
        this.#isUnheld = queuedBecause !== undefined;
        if (this.#isUnheld) this.#onUnheld();
      },
    });
    this.result.catch(() => {}); // whoever waits gets the error
  }

  /** Resolves with undefined once no worker has the job. */
  async untilDoneOrLost(): Promise<Updated | undefined> {
    const lost = new Promise<undefined>((resolve) => {
      this.#onUnheld = () => resolve(undefined);
      if (this.#isUnheld) resolve(undefined);
    });
    const first = await Promise.race([this.result, lost]);
    if (first === undefined) this.leave();
    return first;
  }

  leave(): void {
    this.#left.abort(new Error('the job of the standby is not needed any more'));
  }
}

/** Can this worker lead the run or follow it? Of two such trainers one leads. */
function canTrain({ roles, state, lease, profiles }: Presence, { runId, profile, needs }: Update): boolean {
  return (
    roles.includes('trainer') &&
    (state === 'ready' || state === 'busy') &&
    (lease === undefined || lease === runId) &&
    profiles.includes(queueWithNeeds(profile, needs))
  );
}

function trainersDiffer({ runId, at }: Update, led: Updated, followed: Updated): PauseError {
  const of = ({ by, output }: Updated) => `${by ?? 'a trainer'} computed state ${output.stateDigest.slice(0, 12)}`;
  return new PauseError(
    'TrainersDiffer',
    `iteration ${at.iteration + 1}: ${of(led)}, its standby ${of(followed)}: one of the two machines computes wrongly. Nothing of it was committed`,
    {
      hint: `petrel resume ${runId} computes the iteration again on both, from the last checkpoint. If they differ again, stop the worker of one of them first`,
      where: runId,
    },
  );
}
